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
use tonic::Request;

use crate::ports::Ways;
use crate::settings::MESSAGE_BYTES_MAX;

/// A plan as it is handed to a scheduler.
pub(super) struct Submission {
    pub(super) plan: Vec<u8>,
    pub(super) session: String,
    pub(super) config: SessionConfig,
}

impl Submission {
    /// Has the scheduler at `host:port` run it, and gives where its results are, in their order. Its job goes on when this is dropped.
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

/// Where a job's results are, once it is done.
fn ended(told: GetJobStatusResult) -> Result<Option<Vec<PartitionLocation>>> {
    let Some(status) = told.status else { return Ok(None) };
    match status.status {
        Some(job_status::Status::Failed(why)) => Err(match exhausted(&why.error) {
            Some(text) => DataFusionError::ResourcesExhausted(text.to_string()),
            None => DataFusionError::Execution(format!("Job {} failed: {}", status.job_id, why.error)),
        }),
        Some(job_status::Status::Successful(done)) => {
            let locations = done.partition_location.into_iter().map(TryInto::try_into);
            locations.collect::<std::result::Result<_, BallistaError>>().map(Some).map_err(BallistaError::into_datafusion)
        }
        _ => Ok(None),
    }
}
