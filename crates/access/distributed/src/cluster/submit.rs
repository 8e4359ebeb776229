//! A plan on its way to the scheduler, until its job is done.

use ballista_core::BALLISTA_VERSION;
use ballista_core::error::BallistaError;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{ExecuteQueryParams, GetJobStatusResult, KeyValuePair, job_status};
use ballista_core::serde::scheduler::PartitionLocation;
use ballista_core::version::{check_compatibility, insert_version_header, version_from_metadata};
use datafusion::config::ConfigEntry;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionConfig;
use forebay_jobs::RUN_AGAIN;
use forebay_types::{Error, ErrorKind};
use tonic::Request;

use crate::broken_off::is_gone;
use crate::ports::Ways;
use crate::settings::MESSAGE_BYTES_MAX;

/// A plan as it is handed to a scheduler.
pub(super) struct Submission {
    pub(super) plan: Vec<u8>,
    pub(super) session: String,
    pub(super) config: SessionConfig,
}

impl Submission {
    /// Has the scheduler at `host:port` run it, and gives where its results are, in their order. Its job ends when this is dropped.
    pub(super) async fn run(&self, ways: &Ways, scheduler: &str) -> Result<Vec<PartitionLocation>> {
        // All that is known of an error is its text, by which it is sorted.
        let failed = |text: String| DataFusionError::Execution(text);
        let endpoint = ways.endpoint(scheduler).map_err(|error| failed(error.to_string()))?;
        let channel = endpoint.connect().await.map_err(|error| failed(format!("{error:?}")))?;
        let mut client = SchedulerGrpcClient::new(channel)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
            .max_decoding_message_size(MESSAGE_BYTES_MAX);
        let told = client.execute_query_push(self.request()).await.map_err(|status| failed(format!("{status:?}")))?;
        check_compatibility(Some(BALLISTA_VERSION), version_from_metadata(told.metadata())).map_err(failed)?;
        let mut told = told.into_inner();
        loop {
            let next = told.message().await.map_err(|status| failed(status.to_string()))?;
            let next = next.ok_or_else(|| failed("Stream closed without job completing".to_string()))?;
            if let Some(locations) = ended(next)? {
                return Ok(locations);
            }
        }
    }

    fn request(&self) -> Request<ExecuteQueryParams> {
        let setting = |ConfigEntry { key, value, .. }| KeyValuePair { key, value };
        let mut request = Request::new(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(self.plan.clone())),
            settings: self.config.options().entries().into_iter().map(setting).collect(),
            session_id: self.session.clone(),
            operation_id: format!("{:016x}", forebay_runtime::random::<u64>()),
        });
        insert_version_header(request.metadata_mut());
        request
    }
}

/// What a task lacked memory for: it comes as a text, within others.
fn exhausted(error: &str) -> Option<&str> {
    Some(error.split_once("ResourcesExhausted(\"")?.1.split("\")").next().unwrap_or_default())
}

/// What a task said of its data, in words: it comes as the names of errors within others.
fn of_data(error: &str) -> Option<String> {
    const WORDS: [(&str, &str); 6] = [
        ("CastError(\"", "Cast error"),
        ("CsvError(\"", "Csv error"),
        ("JsonError(\"", "Json error"),
        ("ParseError(\"", "Parser error"),
        ("ComputeError(\"", "Compute error"),
        ("ArithmeticOverflow(\"", "Arithmetic overflow"),
    ];
    let within = error.split_once("ArrowError(")?.1;
    if within.starts_with("DivideByZero") {
        return Some("Arrow error: Divide by zero error".to_string());
    }
    let (rest, words) = WORDS.iter().find_map(|(name, words)| Some((within.strip_prefix(name)?, words)))?;
    Some(format!("Arrow error: {words}: {}", quoted(rest)?))
}

/// What Forebay said itself of a file or a statement, which comes as the name of an error as well. None of what a query may be run again for.
fn of_ours(error: &str) -> Option<Error> {
    let (_, failed) = error.split_once("Task failed due to runtime execution error: ")?;
    if error.contains(RUN_AGAIN) || is_gone(failed) {
        return None;
    }
    let (kind, rest) = failed.split_once("Error { kind: ")?.1.split_once(", message: \"")?;
    let kind = match kind {
        "Corrupt" => ErrorKind::Corrupt,
        "Invalid" => ErrorKind::Invalid,
        _ => return None,
    };
    Some(Error::new(kind, quoted(rest)?))
}

/// A text up to the quote that ends it, with its signs in place of what stands for them.
fn quoted(rest: &str) -> Option<String> {
    let (mut said, mut signs) = (String::new(), rest.chars());
    loop {
        match signs.next()? {
            '"' => return Some(said),
            '\\' => match signs.next()? {
                'n' => said.push('\n'),
                sign => said.push(sign),
            },
            sign => said.push(sign),
        }
    }
}

/// Where a job's results are, once it is done.
fn ended(told: GetJobStatusResult) -> Result<Option<Vec<PartitionLocation>>> {
    let Some(status) = told.status else { return Ok(None) };
    match status.status {
        Some(job_status::Status::Failed(why)) => {
            if let Some(text) = exhausted(&why.error) {
                return Err(DataFusionError::ResourcesExhausted(text.to_string()));
            }
            if let Some(said) = of_ours(&why.error) {
                return Err(DataFusionError::External(Box::new(said)));
            }
            let why = of_data(&why.error).unwrap_or(why.error);
            Err(DataFusionError::Execution(format!("Job {} failed: {why}", status.job_id)))
        }
        Some(job_status::Status::Successful(done)) => {
            let locations = done.partition_location.into_iter().map(TryInto::try_into);
            locations.collect::<std::result::Result<_, BallistaError>>().map(Some).map_err(BallistaError::into_datafusion)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_says_of_its_data_is_told_in_words() {
        let said = |error: &str| {
            of_data(&format!("Job failed due to stage 1 failed: Task failed due to runtime execution error: {error}"))
        };
        let cast =
            r#"DataFusionError(Shared(External(ArrowError(CastError("Cannot cast string 'a \"b\"' to value of Int32 type")))))"#;
        assert_eq!(said(cast).unwrap(), "Arrow error: Cast error: Cannot cast string 'a \"b\"' to value of Int32 type");
        assert_eq!(said(r#"ArrowError(CsvError("line 3\n2"), Some(""))"#).unwrap(), "Arrow error: Csv error: line 3\n2");
        assert_eq!(
            said("DataFusionError(Shared(External(ArrowError(DivideByZero))))").unwrap(),
            "Arrow error: Divide by zero error"
        );
        for other in ["DataFusionError(Internal(\"x\"))", "ArrowError(IpcError(\"x\"))", "ArrowError(CastError(\"never ends"] {
            assert_eq!(said(other), None);
        }
    }

    #[test]
    fn what_forebay_says_of_a_file_keeps_its_kind_and_its_words() {
        let job = |error: &str| format!("Job failed due to stage 1 failed: Task failed due to runtime execution error: {error}");
        for told in [Error::corrupt("'/lake/a \"b\".csv.gz' is damaged\nor cut short"), Error::invalid("it can't be so")] {
            let told_again = of_ours(&job(&format!("DataFusionError(Shared(External({told:?})))"))).unwrap();
            assert_eq!((told_again.kind(), told_again.message()), (told.kind(), told.message()));
        }
        let corrupt = format!("{:?}", Error::corrupt("x"));
        for other in [
            job(&format!("{:?}", Error::data_lost("x"))),
            job(&format!("FetchFailed({corrupt})")),
            job(&format!("{RUN_AGAIN}: {corrupt}")),
            format!("Task failed due to IO error: {corrupt}"),
            job("Error { kind: Corrupt, message: \"never ends"),
        ] {
            assert!(of_ours(&other).is_none(), "{other}");
        }
    }
}
