//! The smallest program that does only that work: as many questions by gRPC, with the same words of tasks that are done, to a server in this process
//! that has no books and answers each at once with nothing.

use std::sync::Arc;
use std::time::Duration;

use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::scheduler_grpc_server::{SchedulerGrpc, SchedulerGrpcServer};
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult, CreateUpdateSessionParams,
    CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult, ExecutorStoppedParams, ExecutorStoppedResult,
    GetJobMetricsParams, GetJobMetricsResult, GetJobStatusParams, GetJobStatusResult, HeartBeatParams, HeartBeatResult,
    PollWorkParams, PollWorkResult, RegisterExecutorParams, RegisterExecutorResult, RemoveSessionParams, RemoveSessionResult,
    UpdateTaskStatusParams, UpdateTaskStatusResult,
};
use forebay_types::{Error, Result};
use futures::stream::Empty;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};

use super::{Answered, PollsArgs, Stub, WAYS, ask};

/// What comes of the same questions without a scheduler.
pub(super) async fn limit(args: &PollsArgs) -> Result<(Vec<Answered>, Duration)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let serving = Server::builder().add_service(SchedulerGrpcServer::new(AtOnce));
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    // Ends with this set.
    let mut server = JoinSet::new();
    server.spawn(async move { serving.serve_with_incoming(incoming).await });
    let endpoint = Endpoint::from_shared(address).map_err(|error| Error::internal(error.to_string()))?;
    let ways: Vec<_> = (0..WAYS).map(|_| SchedulerGrpcClient::new(endpoint.connect_lazy())).collect();
    let stubs: Vec<_> = (1..=args.executors).map(|number| Arc::new(Mutex::new(Stub::telling(number)))).collect();
    ask(args, &stubs, &ways).await
}

/// Answers questions for tasks, and nothing else.
struct AtOnce;

macro_rules! at_once {
    ($($not_asked:ident($with:ty) -> $gives:ty;)+) => {
        #[tonic::async_trait]
        impl SchedulerGrpc for AtOnce {
            type ExecuteQueryPushStream = Empty<Result<GetJobStatusResult, Status>>;

            async fn poll_work(&self, _: Request<PollWorkParams>) -> Result<Response<PollWorkResult>, Status> {
                Ok(Response::new(PollWorkResult::default()))
            }

            $(async fn $not_asked(&self, _: Request<$with>) -> Result<Response<$gives>, Status> {
                Err(Status::unimplemented("it answers questions for tasks alone"))
            })+
        }
    };
}

at_once! {
    register_executor(RegisterExecutorParams) -> RegisterExecutorResult;
    heart_beat_from_executor(HeartBeatParams) -> HeartBeatResult;
    update_task_status(UpdateTaskStatusParams) -> UpdateTaskStatusResult;
    create_update_session(CreateUpdateSessionParams) -> CreateUpdateSessionResult;
    remove_session(RemoveSessionParams) -> RemoveSessionResult;
    execute_query_push(ExecuteQueryParams) -> Empty<Result<GetJobStatusResult, Status>>;
    execute_query(ExecuteQueryParams) -> ExecuteQueryResult;
    get_job_status(GetJobStatusParams) -> GetJobStatusResult;
    get_job_metrics(GetJobMetricsParams) -> GetJobMetricsResult;
    executor_stopped(ExecutorStoppedParams) -> ExecutorStoppedResult;
    cancel_job(CancelJobParams) -> CancelJobResult;
    clean_job_data(CleanJobDataParams) -> CleanJobDataResult;
}
