//! What errors, which come from Ballista as text, say of a process that went away: a lost stream, or a lost query.

/// What a stream's end says when the process at its other end is gone, or the connection is.
const SAYS: [&str; 5] =
    ["h2 protocol error", "error reading a body from connection", "broken pipe", "Broken pipe", "Connection reset by peer"];

/// What Ballista says of its own connections only, to executors and to the scheduler.
const OF_THE_CLUSTER: [&str; 6] = [
    "Grpc connection error",
    "GrpcConnectionError",
    "Grpc Execute Action error",
    "GrpcActionError",
    "Shuffle fetch partition error",
    "FetchFailed",
];

/// What a client hears of a scheduler that is gone, or of its way to it. A job that failed may say the same of storage.
const OF_THE_WAY: [&str; 8] = [
    "Stream closed without job completing",
    "transport error",
    "tcp connect error",
    "Connection refused",
    "operation was canceled",
    "connection closed",
    "currently unavailable",
    "Timeout expired",
];

/// What begins the scheduler's word on a job, as `Job .. failed: ..`.
const JOB: &str = "Job ";

/// Whether an error, which comes as text, is that of a stream whose sender went away in the middle: an executor that was killed while
/// others read from it. What it sent is lost as what it has not sent is; read from another one it may be whole.
pub(crate) fn is_broken_off(error: &str) -> bool {
    says(error, &SAYS)
}

/// Whether a query failed since a process of the cluster went away: an executor that it read from, or the scheduler itself.
pub(crate) fn is_gone(error: &str) -> bool {
    let is_word_of_scheduler = error.contains(JOB) && error.contains(" failed: ");
    is_broken_off(error) || says(error, &OF_THE_CLUSTER) || (!is_word_of_scheduler && says(error, &OF_THE_WAY))
}

fn says(error: &str, words: &[&str]) -> bool {
    words.iter().any(|words| error.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_ends_in_the_middle_is_told_from_what_a_task_says_itself() {
        assert!(is_broken_off(
            "Arrow error: External error: status: Unknown, h2 protocol error: error reading a body from connection"
        ));
        assert!(is_broken_off("stream closed because of a broken pipe"));
        assert!(!is_broken_off("Arrow error: Divide by zero error"));
    }

    #[test]
    fn a_scheduler_that_is_gone_is_told_from_its_word_on_a_job() {
        for gone in [
            "Execution error: Stream closed without job completing",
            "Execution error: Status { code: Unavailable, message: \"tcp connect error\" }",
            "Execution error: GrpcConnectionError(\"Error connecting to Ballista scheduler or executor at http://h:1\")",
            "External error: Shuffle fetch partition error from Executor e, map_stage 3, map_partition 0, error desc: gone",
        ] {
            assert!(is_gone(gone), "{gone}");
        }
        for word in [
            "Execution error: Job abc failed: Execution error: Retry: s3://b can't be reached: Connection refused",
            "Execution error: Job abc failed: Divide by zero error",
            "Execution error: Job abc failed: Cancelled",
            "Resources exhausted: Failed to allocate",
        ] {
            assert!(!is_gone(word), "{word}");
        }
    }
}
