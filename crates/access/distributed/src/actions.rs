//! Services of Arrow Flight that do actions, and nothing else.

use std::pin::Pin;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse, PollInfo,
    PutResult, Result as Answer, SchemaResult, Ticket,
};
use futures::Stream;
use tonic::{Request, Response, Status, Streaming};

pub(crate) type Answered<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What does actions.
#[tonic::async_trait]
pub(crate) trait Actions: Send + Sync + 'static {
    /// Who it is, as those are told who ask for anything else.
    const WHO: &'static str;

    /// Does one.
    async fn act(&self, request: Request<Action>) -> Result<Response<Answered<Answer>>, Status>;

    /// Which there are.
    async fn list(&self) -> Result<Response<Answered<ActionType>>, Status> {
        not_here::<Self, _>()
    }
}

/// The service of what does actions.
pub(crate) struct ActionsOnly<T>(pub(crate) T);

fn not_here<A: Actions + ?Sized, T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented(format!("{} answers actions only", A::WHO)))
}

/// The whole service, with the calls that are not answered.
macro_rules! actions_only {
    ($($call:ident($asked:ty) -> $answer:ty;)*) => {
        #[tonic::async_trait]
        impl<A: Actions> FlightService for ActionsOnly<A> {
            type HandshakeStream = Answered<HandshakeResponse>;
            type ListFlightsStream = Answered<FlightInfo>;
            type DoGetStream = Answered<FlightData>;
            type DoPutStream = Answered<PutResult>;
            type DoExchangeStream = Answered<FlightData>;
            type DoActionStream = Answered<Answer>;
            type ListActionsStream = Answered<ActionType>;

            async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
                self.0.act(request).await
            }

            async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
                self.0.list().await
            }

            $(async fn $call(&self, _: Request<$asked>) -> Result<Response<$answer>, Status> {
                not_here::<A, _>()
            })*
        }
    };
}

actions_only! {
    handshake(Streaming<HandshakeRequest>) -> Self::HandshakeStream;
    list_flights(Criteria) -> Self::ListFlightsStream;
    get_flight_info(FlightDescriptor) -> FlightInfo;
    poll_flight_info(FlightDescriptor) -> PollInfo;
    get_schema(FlightDescriptor) -> SchemaResult;
    do_get(Ticket) -> Self::DoGetStream;
    do_put(Streaming<FlightData>) -> Self::DoPutStream;
    do_exchange(Streaming<FlightData>) -> Self::DoExchangeStream;
}
