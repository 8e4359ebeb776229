//! The gRPC service in front of Ballista's scheduler: notes each report in the books first, and takes physical plans only.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::serde::protobuf::{
    CancelJobParams, CancelJobResult, CleanJobDataParams, CleanJobDataResult, CreateUpdateSessionParams,
    CreateUpdateSessionResult, ExecuteQueryParams, ExecuteQueryResult, ExecutorRegistration, ExecutorStoppedParams,
    ExecutorStoppedResult, GetJobMetricsParams, GetJobMetricsResult, GetJobStatusParams, GetJobStatusResult, HeartBeatParams,
    HeartBeatResult, PollWorkParams, PollWorkResult, RegisterExecutorParams, RegisterExecutorResult, RemoveSessionParams,
    RemoveSessionResult, UpdateTaskStatusParams, UpdateTaskStatusResult, job_status,
};
use ballista_core::serde::scheduler::ExecutorSpecification;
use forebay_client::Client;
use forebay_jobs::{Books, Sender, TaskName, worker_of};
use forebay_runtime::time::timeout;
use forebay_scheduling::room_bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tonic::{Request, Response, Status};

use super::Server;
use super::lost::{executor_lost, truthful};
use super::words::{lost, name, sift};
use crate::shuffle::each_loss;

/// So long a question of an executor that has nothing to do is held, unless there is a task for it; and how often it is looked
/// whether one has come that nobody told of, as when its input has.
const HELD: Duration = Duration::from_millis(500);
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

    /// Notes what an executor says, and leaves what Ballista is to hear of it.
    fn note(&self, asked: &mut PollWorkParams) {
        let Some(executor) = asked.metadata.as_ref() else { return };
        let slots = slots(executor);
        let view = self.client.view();
        let worker = worker_of(&executor.id).and_then(|id| view.workers.iter().find(|worker| worker.id == id));
        let room = worker.map(|worker| room_bytes(worker.dram_bytes));
        let mut books = self.books.lock();
        let sender = Sender::Executor(&executor.id);
        books.decide("a question", sender, |books| books.executor_asks(&executor.id, slots, room));
        let told = std::mem::take(&mut asked.task_status).into_iter().filter_map(|status| {
            let job = status.job_id.clone();
            books.decide("the end of a task", Sender::Job(&job), |books| sift(books, &executor.id, status)).flatten()
        });
        asked.task_status = told.flat_map(each_loss).collect();
        let is_idle = asked.num_free_vcores >= slots;
        let waits = books.decide("what is lost", sender, |books| books.hears_nothing(&executor.id, is_idle));
        asked.task_status.extend(waits.iter().flatten().map(lost));
        let told: Vec<TaskName> = asked.task_status.iter().map(name).collect();
        books.decide("what is told", sender, |books| books.told(&executor.id, told));
    }

    /// The question of an executor without a task, to be asked again while it is held. None of one that has a task: it tells with its next
    /// question how that ended.
    fn asks_again(&self, asked: &PollWorkParams) -> Option<PollWorkParams> {
        // Who does not say where he is, is where this question came from.
        let executor = asked.metadata.as_ref().filter(|executor| executor.host.is_some())?;
        let is_idle = asked.num_free_vcores > 0 && asked.num_free_vcores >= slots(executor);
        let rests = is_idle && self.books.lock().rests(&executor.id);
        rests.then(|| PollWorkParams { task_status: Vec::new(), ..asked.clone() })
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
        self.note(request.get_mut());
        let again = self.asks_again(request.get_ref());
        let until = forebay_runtime::now() + HELD;
        loop {
            // From before it is looked what there is.
            let mut news = pin!(self.news.notified());
            news.as_mut().enable();
            let answer = self.ask(request).await?;
            let PollWorkResult { tasks, jobs_to_clean } = answer.get_ref();
            let has_nothing = tasks.is_empty() && jobs_to_clean.is_empty() && forebay_runtime::now() < until;
            let Some(again) = again.clone().filter(|_| has_nothing) else { return Ok(answer) };
            // Who hangs up meanwhile is given nothing.
            let _ = timeout(LOOK, news).await;
            request = Request::new(again);
        }
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
