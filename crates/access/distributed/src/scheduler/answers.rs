//! The scheduler's side of `control`: jobs, transfers and slots out of the books, and the cancelling of a job.

use std::pin::Pin;
use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse, PollInfo,
    PutResult, Result as Answer, SchemaResult, Ticket,
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use serde::Serialize;
use tonic::{Request, Response, Status, Streaming};

use super::input::Carrier;
use super::watch::close_over;
use super::{Books, Server};
use crate::control::{Ask, ClusterState};

/// Answers what people ask: as actions of Arrow Flight, with JSON as their results, at the port of the scheduler.
pub(super) struct Answers {
    pub(super) server: Server,
    pub(super) books: Arc<Mutex<Books>>,
    pub(super) carrier: Arc<Carrier>,
}

type Answered<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Answers {
    fn cluster(&self) -> ClusterState {
        let counts = self.books.lock().counts();
        ClusterState {
            executors: counts.executors,
            slots: counts.slots,
            slots_free: counts.slots.saturating_sub(counts.tasks_running),
            arriving_bytes: counts.arriving_bytes,
            brought_bytes: counts.brought_bytes,
        }
    }

    async fn cancel(&self, name: &str) -> Result<(), Status> {
        let job = self.books.lock().named(name);
        let job = job.ok_or_else(|| Status::not_found(format!("there is no running job {name}: `forebay jobs` lists them")))?;
        self.server.cancel_job(job.into()).await.map_err(|error| Status::internal(error.to_string()))
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(value).map_err(|error| Status::internal(error.to_string()))
}

fn not_here<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("the scheduler answers actions only"))
}

#[tonic::async_trait]
impl FlightService for Answers {
    type HandshakeStream = Answered<HandshakeResponse>;
    type ListFlightsStream = Answered<FlightInfo>;
    type DoGetStream = Answered<FlightData>;
    type DoPutStream = Answered<PutResult>;
    type DoExchangeStream = Answered<FlightData>;
    type DoActionStream = Answered<Answer>;
    type ListActionsStream = Answered<ActionType>;

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let action = request.into_inner();
        let ask = Ask::ALL.into_iter().find(|ask| ask.name() == action.r#type);
        let ask = ask.ok_or_else(|| Status::invalid_argument(format!("there is no action {:?}", action.r#type)))?;
        let argument = std::str::from_utf8(&action.body).map_err(|_| Status::invalid_argument("the argument is no text"))?;
        let body = match ask {
            Ask::Cluster => json(&self.cluster())?,
            Ask::Jobs => {
                close_over(&self.server, &self.books).await;
                json(&self.books.lock().shown())?
            }
            Ask::Tasks => {
                // Those of a job that is over are too.
                close_over(&self.server, &self.books).await;
                json(&self.books.lock().tasks_shown())?
            }
            Ask::Transfers => json(&self.carrier.shown())?,
            Ask::Cancel => json(&self.cancel(argument).await?)?,
        };
        let answer = futures::stream::once(async { Ok(Answer { body: body.into() }) });
        Ok(Response::new(answer.boxed()))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        let actions = Ask::ALL.map(|ask| Ok(ActionType { r#type: ask.name().to_string(), description: String::new() }));
        Ok(Response::new(futures::stream::iter(actions).boxed()))
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
