/// What a stream's end says when the process at its other end is gone, or the connection is.
const SAYS: [&str; 5] =
    ["h2 protocol error", "error reading a body from connection", "broken pipe", "Broken pipe", "Connection reset by peer"];

/// Whether an error, which comes as text, is that of a stream whose sender went away in the middle: an executor that was killed while
/// others read from it. What it sent is lost as what it has not sent is; read from another one it may be whole.
pub(crate) fn is_broken_off(error: &str) -> bool {
    SAYS.iter().any(|words| error.contains(words))
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
}
