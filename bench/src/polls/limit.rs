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

fn is_not_asked<T>() -> Result<T, Status> {
    Err(Status::unimplemented("it answers questions for tasks alone"))
}

#[tonic::async_trait]
impl SchedulerGrpc for AtOnce {
    type ExecuteQueryPushStream = Empty<Result<GetJobStatusResult, Status>>;

    async fn poll_work(&self, _: Request<PollWorkParams>) -> Result<Response<PollWorkResult>, Status> {
        Ok(Response::new(PollWorkResult::default()))
    }

    async fn register_executor(&self, _: Request<RegisterExecutorParams>) -> Result<Response<RegisterExecutorResult>, Status> {
        is_not_asked()
    }

    async fn heart_beat_from_executor(&self, _: Request<HeartBeatParams>) -> Result<Response<HeartBeatResult>, Status> {
        is_not_asked()
    }

    async fn update_task_status(&self, _: Request<UpdateTaskStatusParams>) -> Result<Response<UpdateTaskStatusResult>, Status> {
        is_not_asked()
    }

    async fn create_update_session(
        &self,
        _: Request<CreateUpdateSessionParams>,
    ) -> Result<Response<CreateUpdateSessionResult>, Status> {
        is_not_asked()
    }

    async fn remove_session(&self, _: Request<RemoveSessionParams>) -> Result<Response<RemoveSessionResult>, Status> {
        is_not_asked()
    }

    async fn execute_query_push(&self, _: Request<ExecuteQueryParams>) -> Result<Response<Self::ExecuteQueryPushStream>, Status> {
        is_not_asked()
    }

    async fn execute_query(&self, _: Request<ExecuteQueryParams>) -> Result<Response<ExecuteQueryResult>, Status> {
        is_not_asked()
    }

    async fn get_job_status(&self, _: Request<GetJobStatusParams>) -> Result<Response<GetJobStatusResult>, Status> {
        is_not_asked()
    }

    async fn get_job_metrics(&self, _: Request<GetJobMetricsParams>) -> Result<Response<GetJobMetricsResult>, Status> {
        is_not_asked()
    }

    async fn executor_stopped(&self, _: Request<ExecutorStoppedParams>) -> Result<Response<ExecutorStoppedResult>, Status> {
        is_not_asked()
    }

    async fn cancel_job(&self, _: Request<CancelJobParams>) -> Result<Response<CancelJobResult>, Status> {
        is_not_asked()
    }

    async fn clean_job_data(&self, _: Request<CleanJobDataParams>) -> Result<Response<CleanJobDataResult>, Status> {
        is_not_asked()
    }
}
