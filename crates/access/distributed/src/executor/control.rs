//! The calls that Ballista's scheduler makes to an executor: tasks are cancelled; what a pulling executor has no use for is refused.

use std::sync::Arc;

use ballista_core::serde::protobuf::executor_grpc_server::ExecutorGrpc;
use ballista_core::serde::protobuf::{
    CancelTasksParams, CancelTasksResult, LaunchMultiTaskParams, LaunchMultiTaskResult, LaunchTaskParams, LaunchTaskResult,
    RemoveJobDataParams, RemoveJobDataResult, StopExecutorParams, StopExecutorResult,
};
use ballista_executor::executor::Executor;
use tonic::{Request, Response, Status};

/// What the scheduler tells an executor that asks for its tasks itself: which to give up.
pub(super) struct Control(pub(super) Arc<Executor>);

fn refused<T>() -> Result<Response<T>, Status> {
    Err(Status::failed_precondition("this executor asks for its tasks itself"))
}

#[tonic::async_trait]
impl ExecutorGrpc for Control {
    async fn launch_task(&self, _: Request<LaunchTaskParams>) -> Result<Response<LaunchTaskResult>, Status> {
        refused()
    }

    async fn launch_multi_task(&self, _: Request<LaunchMultiTaskParams>) -> Result<Response<LaunchMultiTaskResult>, Status> {
        refused()
    }

    async fn stop_executor(&self, _: Request<StopExecutorParams>) -> Result<Response<StopExecutorResult>, Status> {
        // It was silent for too long; it goes on, and is an executor again with its next question.
        Ok(Response::new(StopExecutorResult {}))
    }

    async fn cancel_tasks(&self, request: Request<CancelTasksParams>) -> Result<Response<CancelTasksResult>, Status> {
        let mut cancelled = true;
        for task in request.into_inner().task_infos {
            let ended = self.0.cancel_task(task.job_id.into(), task.stage_id as usize, task.task_id as usize).await;
            cancelled &= ended.unwrap_or(false);
        }
        Ok(Response::new(CancelTasksResult { cancelled }))
    }

    async fn remove_job_data(&self, _: Request<RemoveJobDataParams>) -> Result<Response<RemoveJobDataResult>, Status> {
        // Told with the answers to its questions.
        Ok(Response::new(RemoveJobDataResult {}))
    }
}
