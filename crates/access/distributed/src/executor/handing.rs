//! What an executor hands out.

use std::pin::Pin;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse, PollInfo,
    PutResult, Result as Answer, SchemaResult, Ticket,
};
use ballista_core::serde::decode_protobuf;
use ballista_core::serde::scheduler::{Action as Ask, ShuffleFileKind};
use ballista_executor::flight_service::BallistaFlightService;
use futures::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::shuffle::{WHOLE_FILE, is_job_name};

/// Hands out what lies in this executor's folder: outputs and results, each as the bytes of its file. Who gets them decodes them, and
/// checks them as he does: Ballista's service would decode them here unchecked, and go wherever the name of a job leads.
pub(super) struct Handing(BallistaFlightService);

type Handed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

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

fn not_here<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("an executor answers actions only"))
}

#[tonic::async_trait]
impl FlightService for Handing {
    type HandshakeStream = Handed<HandshakeResponse>;
    type ListFlightsStream = Handed<FlightInfo>;
    type DoGetStream = Handed<FlightData>;
    type DoPutStream = Handed<PutResult>;
    type DoExchangeStream = Handed<FlightData>;
    type DoActionStream = Handed<Answer>;
    type ListActionsStream = Handed<ActionType>;

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        check(request.get_ref())?;
        self.0.do_action(request).await
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        not_here()
    }

    async fn handshake(&self, _: Request<Streaming<HandshakeRequest>>) -> Result<Response<Self::HandshakeStream>, Status> {
        not_here()
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        not_here()
    }

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        not_here()
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        not_here()
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        not_here()
    }

    async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        not_here()
    }

    async fn do_put(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        not_here()
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        not_here()
    }
}
