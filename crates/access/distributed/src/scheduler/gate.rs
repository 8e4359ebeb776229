//! The gRPC service in front of Ballista's scheduler: notes each report in the books first, and takes physical plans only.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult, CreateUpdateSessionParams,
    CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult, ExecutorRegistration, ExecutorStoppedParams,
    ExecutorStoppedResult, GetJobMetricsParams, GetJobMetricsResult, GetJobStatusParams, GetJobStatusResult, HeartBeatParams,
    HeartBeatResult, PollWorkParams, PollWorkResult, RegisterExecutorParams, RegisterExecutorResult, RemoveSessionParams,
    RemoveSessionResult, TaskStatus, UpdateTaskStatusParams, UpdateTaskStatusResult, job_status,
};
use ballista_core::serde::scheduler::ExecutorSpecification;
use forebay_client::Client;
use forebay_jobs::{Books, Question, Sender, TakenIn, held};
use futures::{Stream, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tonic::{Request, Response, Status};

use super::Server;
use super::lost::{executor_lost, truthful};
use super::words::{as_heard, lost, name, word};
use crate::shuffle::each_loss;

/// How often it is looked for an executor whose question is held whether a task has come that nobody told of, as when its input has.
const LOOK: Duration = Duration::from_millis(50);
/// When it is looked for a job whose client is gone, and how often: for less time than one who was cut off waits before asking for another.
const GONE_LOOK: Duration = Duration::from_millis(100);
const GONE_LOOKS: usize = 4;

/// Ballista's scheduler behind our books: what executors say of their tasks is noted before Ballista asks the policy, so
/// that a slot that has just become free is known to be.
pub(super) struct Gate {
    inner: Server,
    books: Arc<Mutex<Books>>,
    client: Client,
    /// Of the books.
    news: Arc<Notify>,
}

impl Gate {
    pub(super) fn new(inner: Server, books: Arc<Mutex<Books>>, client: Client) -> Self {
        let news = Arc::clone(&books.lock().news);
        Self { inner, books, client, news }
    }

    /// Notes what an executor says, and leaves what Ballista is to hear of it. The question of one that may wait for a task, to be asked again
    /// while it is held.
    fn note(&self, asked: &mut PollWorkParams) -> Option<PollWorkParams> {
        let told = std::mem::take(&mut asked.task_status);
        let Some(executor) = asked.metadata.as_ref() else {
            asked.task_status = told;
            return None;
        };
        let view = self.client.view();
        let (slots, free) = (slots(executor), asked.num_free_vcores);
        let question = Question { executor: &executor.id, slots, free, workers: &view.workers };
        let mut books = self.books.lock();
        let told = told.into_iter().map(|status| (status.job_id.clone(), status));
        let TakenIn { heard, waits } = books.takes_in(&question, told, word);
        let heard = heard.into_iter().map(|(status, heard)| as_heard(status, heard));
        let told: Vec<TaskStatus> = heard.flat_map(each_loss).chain(waits.iter().map(lost)).collect();
        let names = told.iter().map(name).collect();
        books.decide("what is told", Sender::Executor(&executor.id), |books| books.told(&executor.id, names));
        // Who does not say where he is, is where this question came from.
        let may_be_held = executor.host.is_some() && books.may_be_held(&question);
        let again = may_be_held.then(|| asked.clone());
        asked.task_status = told;
        again
    }

    /// Asks Ballista, to its end, also when the executor hangs up meanwhile: a task that the schedule gave must be bound, or wait again.
    async fn ask(&self, request: Request<PollWorkParams>) -> Result<Response<PollWorkResult>, Status> {
        let inner = self.inner.clone();
        let asked = forebay_runtime::spawn(async move { SchedulerGrpc::poll_work(&inner, request).await });
        asked.await.map_err(|error| Status::internal(error.to_string()))?
    }
}

/// Who waits for the end of a job. Where they go away before it, killed or cut off, nobody hears of it: the job ends.
struct Asking {
    server: Server,
    books: Arc<Mutex<Books>>,
    /// By which the books know the job: the session of who waits, from its first news on its own; none where there is nothing to end.
    job: Option<String>,
    /// Jobs of that session that were there before: who was cut off asks again while the first one is there.
    before: Vec<String>,
}

impl Asking {
    /// Of a job that is not there yet.
    fn begin(server: Server, books: Arc<Mutex<Books>>, session: &str) -> Self {
        let before = books.lock().named(session);
        Self { server, books, job: Some(session.to_string()), before }
    }

    fn hears(&mut self, told: &GetJobStatusResult) {
        let Some(told) = &told.status else { return };
        match &told.status {
            Some(job_status::Status::Failed(_) | job_status::Status::Successful(_)) => self.job = None,
            _ => self.job = Some(told.job_id.clone()),
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let Some(name) = self.job.take() else { return };
        let (server, books, before) = (self.server.clone(), Arc::clone(&self.books), std::mem::take(&mut self.before));
        forebay_runtime::spawn_left(async move {
            for _ in 0..GONE_LOOKS {
                // Who gives up in order says so meanwhile.
                forebay_runtime::time::sleep(GONE_LOOK).await;
                // Those that came later are of who asked again.
                let job = books.lock().named(&name).into_iter().find(|job| !before.contains(job));
                // It is being planned, or over.
                let Some(job) = job else { continue };
                tracing::info!(%job, "who asked for a job is gone: it ends");
                if let Err(error) = server.cancel_job(job.into()).await {
                    tracing::warn!(%error, "a job that nobody waits for was not ended");
                }
                return;
            }
        });
    }
}

/// Tasks that an executor runs at once.
fn slots(executor: &ExecutorRegistration) -> u32 {
    let specification: Option<ExecutorSpecification> = executor.specification.clone().map(Into::into);
    specification.map_or(1, |specification| specification.vcores)
}

fn has_nothing(answer: &Response<PollWorkResult>) -> bool {
    let PollWorkResult { tasks, jobs_to_clean } = answer.get_ref();
    tasks.is_empty() && jobs_to_clean.is_empty()
}

/// Only plans that our engine has planned, which are physical ones: the stages of others would not answer as the whole does
/// (`stages`), and pass on by ways that are read unchecked.
fn check_plan(asked: &ExecuteQueryParams) -> Result<(), Status> {
    match asked.query {
        Some(Query::PhysicalPlan(_)) => Ok(()),
        _ => Err(Status::invalid_argument("this scheduler takes physical plans only, as Forebay's SQL makes them")),
    }
}

#[tonic::async_trait]
impl SchedulerGrpc for Gate {
    type ExecuteQueryPushStream = Pin<Box<dyn Stream<Item = Result<GetJobStatusResult, Status>> + Send>>;

    async fn poll_work(&self, mut request: Request<PollWorkParams>) -> Result<Response<PollWorkResult>, Status> {
        let again = self.note(request.get_mut());
        let (is_held, mut first) = (again.is_some(), Some(request));
        let ask = move || {
            let again = || Request::new(again.clone().unwrap_or_default());
            self.ask(first.take().unwrap_or_else(again))
        };
        held(&self.news, is_held, LOOK, ask, has_nothing).await
    }

    async fn register_executor(
        &self,
        request: Request<RegisterExecutorParams>,
    ) -> Result<Response<RegisterExecutorResult>, Status> {
        SchedulerGrpc::register_executor(&self.inner, request).await
    }

    async fn heart_beat_from_executor(&self, request: Request<HeartBeatParams>) -> Result<Response<HeartBeatResult>, Status> {
        SchedulerGrpc::heart_beat_from_executor(&self.inner, request).await
    }

    async fn update_task_status(
        &self,
        request: Request<UpdateTaskStatusParams>,
    ) -> Result<Response<UpdateTaskStatusResult>, Status> {
        SchedulerGrpc::update_task_status(&self.inner, request).await
    }

    async fn create_update_session(
        &self,
        request: Request<CreateUpdateSessionParams>,
    ) -> Result<Response<CreateUpdateSessionResult>, Status> {
        SchedulerGrpc::create_update_session(&self.inner, request).await
    }

    async fn remove_session(&self, request: Request<RemoveSessionParams>) -> Result<Response<RemoveSessionResult>, Status> {
        SchedulerGrpc::remove_session(&self.inner, request).await
    }

    async fn execute_query_push(
        &self,
        request: Request<ExecuteQueryParams>,
    ) -> Result<Response<Self::ExecuteQueryPushStream>, Status> {
        check_plan(request.get_ref())?;
        let mut asking = Asking::begin(self.inner.clone(), Arc::clone(&self.books), &request.get_ref().session_id);
        let told = SchedulerGrpc::execute_query_push(&self.inner, request).await.inspect_err(|_| asking.job = None)?;
        let hears = move |told: GetJobStatusResult| {
            asking.hears(&told);
            truthful(&asking.books, told)
        };
        Ok(told.map(|told| told.map_ok(hears).boxed()))
    }

    async fn execute_query(&self, request: Request<ExecuteQueryParams>) -> Result<Response<ExecuteQueryResult>, Status> {
        check_plan(request.get_ref())?;
        SchedulerGrpc::execute_query(&self.inner, request).await
    }

    async fn get_job_status(&self, request: Request<GetJobStatusParams>) -> Result<Response<GetJobStatusResult>, Status> {
        let told = SchedulerGrpc::get_job_status(&self.inner, request).await?;
        Ok(told.map(|told| truthful(&self.books, told)))
    }

    async fn get_job_metrics(&self, request: Request<GetJobMetricsParams>) -> Result<Response<GetJobMetricsResult>, Status> {
        SchedulerGrpc::get_job_metrics(&self.inner, request).await
    }

    async fn executor_stopped(&self, request: Request<ExecutorStoppedParams>) -> Result<Response<ExecutorStoppedResult>, Status> {
        let executor = &request.get_ref().executor_id;
        executor_lost(&self.inner, &self.books, executor).await;
        // What it has done is there, and would be taken for lost: it is silent from now on, and missed when nobody reads that any more.
        if self.books.lock().attempts.has_done(executor) {
            return Ok(Response::new(ExecutorStoppedResult {}));
        }
        SchedulerGrpc::executor_stopped(&self.inner, request).await
    }

    async fn cancel_job(&self, request: Request<CancelJobParams>) -> Result<Response<CancelJobResult>, Status> {
        SchedulerGrpc::cancel_job(&self.inner, request).await
    }

    async fn clean_job_data(&self, request: Request<CleanJobDataParams>) -> Result<Response<CleanJobDataResult>, Status> {
        SchedulerGrpc::clean_job_data(&self.inner, request).await
    }
}
