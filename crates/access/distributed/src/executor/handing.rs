//! What an executor hands out.

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{Action, Result as Answer};
use ballista_core::serde::decode_protobuf;
use ballista_core::serde::scheduler::{Action as Ask, ShuffleFileKind};
use ballista_executor::flight_service::BallistaFlightService;
use tonic::{Request, Response, Status};

use crate::actions::{Actions, Answered};
use crate::shuffle::{WHOLE_FILE, is_job_name};

/// Hands out what lies in this executor's folder: outputs and results, each as the bytes of its file. Who gets them decodes them, and
/// checks them as he does: Ballista's service would decode them here unchecked, and go wherever the name of a job leads.
pub(super) struct Handing(BallistaFlightService);

impl Handing {
    pub(super) fn new(folder: String) -> Self {
        Self(BallistaFlightService::new(folder))
    }
}

/// Whether it asks for one output as a whole, of a job whose name leads nowhere else.
fn check(action: &Action) -> Result<(), Status> {
    if action.r#type != WHOLE_FILE {
        return Err(Status::invalid_argument(format!("an executor does {WHOLE_FILE} only")));
    }
    let ask = decode_protobuf(&action.body).map_err(|error| Status::invalid_argument(error.to_string()))?;
    let Ask::FetchPartition { job_id, file_kind, byte_ranges, .. } = ask;
    if !is_job_name(job_id.as_str()) {
        return Err(Status::invalid_argument(format!("{:?} is no name of a job", job_id.as_str())));
    }
    if !matches!(file_kind, ShuffleFileKind::Data) || !byte_ranges.is_empty() {
        return Err(Status::invalid_argument("outputs are handed out as a whole"));
    }
    Ok(())
}

#[tonic::async_trait]
impl Actions for Handing {
    const WHO: &'static str = "an executor";

    async fn act(&self, request: Request<Action>) -> Result<Response<Answered<Answer>>, Status> {
        check(request.get_ref())?;
        self.0.do_action(request).await
    }
}
