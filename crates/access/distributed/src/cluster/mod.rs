//! The client's side: sends a planned query to the scheduler, reads its rows, and runs it again where a process was lost.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ballista_core::extension::SessionConfigExt;
use datafusion::arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionConfig;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;
use datafusion_proto::protobuf::{CoalescePartitionsExecNode, PhysicalPlanNode};
use forebay_client::{Client, Wait};
use forebay_jobs::{RUN_AGAIN, Ticket};
use forebay_sql::{Distribute, DistributedQuery, DistributedRun, Progress, sql_told};
use forebay_transport::Security;
use forebay_types::{Error, ErrorKind, OperationId, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::at::At;
use crate::broken_off::is_gone;
use crate::codec::Codec;
use crate::compressed::marked;
use crate::control::SchedulerControl;
use crate::ports::Ways;
use crate::settings::{of_cluster, of_process};
use crate::shuffle::{Files, Told, all};
use crate::travel;
use submit::Submission;

mod submit;

type Rows = BoxStream<'static, Result<RecordBatch, DataFusionError>>;

/// How often a query asks how far it is.
const LOOK: Duration = Duration::from_millis(250);
/// Partitions of a plan for each slot: enough tasks for the schedule to choose from.
const PARTITIONS_A_SLOT: u64 = 2;
/// Partitions of a plan at least and at most.
const PARTITIONS: (u64, u64) = (4, 512);
/// Characters of a statement that a job keeps.
const SQL_CHARS_MAX: usize = 400;

/// How queries reach a scheduler.
#[derive(Clone)]
pub struct ClusterSettings {
    /// `host:port` of the scheduler.
    pub scheduler: String,
    /// Asks the coordinator where a scheduler is that has come back elsewhere; none where the address was given.
    pub finds: Option<Client>,
    /// How long a scheduler that is away is waited for.
    pub wait: Wait,
    /// Token and TLS of the cluster.
    pub security: Security,
    /// Jobs of a higher priority go first.
    pub priority: i32,
    /// Partitions that plans are cut into; two a slot of the cluster when not set.
    pub partitions: Option<usize>,
}

/// A cluster's scheduler, as a place where an engine's queries run.
pub struct Cluster {
    priority: i32,
    at: At,
    ways: Ways,
    partitions: usize,
    /// Jobs that run, or are being cancelled.
    jobs: TaskTracker,
}

impl Cluster {
    /// Asks the scheduler how large its cluster is. `Retry` when it does not answer for as long as it is waited for.
    pub async fn connect(settings: ClusterSettings) -> Result<Self> {
        let ways = Ways::new(&settings.security)?;
        let ClusterSettings { scheduler, finds, wait, security, priority, partitions } = settings;
        let at = At::new(&scheduler, &ways, &security, finds, wait)?;
        let slots = at.answers().await?.slots;
        let by_slots = (slots * PARTITIONS_A_SLOT).clamp(PARTITIONS.0, PARTITIONS.1);
        Ok(Self { priority, at, ways, partitions: partitions.unwrap_or(by_slots as usize), jobs: TaskTracker::new() })
    }

    /// Questions to the scheduler at `host:port`.
    pub fn control(scheduler: &str, security: &Security) -> Result<SchedulerControl> {
        let ways = Ways::new(security)?;
        Ok(SchedulerControl::at(scheduler, ways.endpoint(scheduler)?, &ways))
    }
}

/// Characters of why a plan can't be sent that are told.
const WHY_CHARS_MAX: usize = 200;

/// How often a job that is not known yet is cancelled.
const CANCEL_TRIES: usize = 20;

/// Operators that a stage has around its part of a plan, at most.
const WRAPPERS_MAX: usize = 4;

/// Time before it is run again: who is gone is missed meanwhile.
const PAUSE: Duration = Duration::from_millis(500);

/// How often a query is run whose job was lost: what its stages had read, its results, or its scheduler.
const TRIES: usize = 8;

/// Bytes of an answer that are read before the first row is given out, from where on the query can't run again.
const HELD_BYTES_MAX: usize = 8 << 20;

#[async_trait]
impl Distribute for Cluster {
    fn prepare(&self, config: SessionConfig) -> SessionStateBuilder {
        let config = of_process(of_cluster(config.with_target_partitions(self.partitions)), &self.ways);
        SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_physical_optimizer_rules(crate::stages::rules())
    }

    async fn run(&self, query: DistributedQuery) -> Result<Option<DistributedRun>> {
        let (plan, encoded) = match message(query.plan) {
            Ok(message) => message,
            Err(why) => {
                tracing::debug!(%why, "a plan can't travel: the query runs here");
                return Ok(None);
            }
        };
        let sql: String = sql_told(&query.sql).chars().take(SQL_CHARS_MAX).collect();
        let operation = query.operation;
        let who = query.who.to_string();
        let ticket = Ticket {
            operation,
            priority: self.priority,
            sql: sql.clone(),
            pins: query.pins,
            who,
            trace: forebay_trace::of(operation),
        };
        let mut config = query.config.with_ballista_job_name(&sql);
        travel::send(&mut config, Some(&ticket), None)?;

        let progress = Arc::new(Mutex::new(Progress::default()));
        let watching = AbortOnDropHandle::new(forebay_runtime::spawn(watch(self.at.clone(), operation, Arc::clone(&progress))));
        let (at, counted) = (self.at.clone(), self.jobs.token());
        let mut running = RunningJob { at, operation, ended: false, counted, _watching: watching };
        let (at, ways, schema) = (self.at.clone(), self.ways.clone(), plan.schema());
        let submission = Submission { plan: encoded, session: format!("{:016x}", operation.0), config };
        let rows = async move {
            let mut tries = 1;
            loop {
                let first = async {
                    // It comes when the job is done.
                    let locations = submission.run(&ways, &at.address()).await?;
                    let told = Told::of(&locations);
                    let files = Files::new(&ways);
                    let mut rows = all(files.rows_of_each(locations), told);
                    Ok((held(&mut rows).await?, rows))
                };
                match first.await {
                    Err(error) if tries < TRIES && runs_again(&error) => {
                        tracing::info!(tries, %error, "the query runs again");
                        tries += 1;
                        forebay_runtime::time::sleep(PAUSE).await;
                        at.answers().await.map_err(|error| DataFusionError::External(Box::new(error)))?;
                    }
                    Err(error) => return Err(sorted(error)),
                    Ok((held, rows)) => return Ok(futures::stream::iter(held.into_iter().map(Ok)).chain(rows.map_err(sorted))),
                }
            }
        };
        let rows = futures::stream::once(rows).try_flatten();
        let rows = rows.chain(futures::stream::poll_fn(move |_| {
            // Reached when all rows were given out; dropped before that, the job is ended.
            running.end();
            std::task::Poll::Ready(None)
        }));
        let progress = Arc::new(move || *progress.lock());
        Ok(Some(DistributedRun { stream: Box::pin(RecordBatchStreamAdapter::new(schema, rows)), progress }))
    }

    fn stays(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
        message(Arc::clone(plan)).err()
    }

    async fn settle(&self) {
        // Closed alone it is waited for; others are counted all the same.
        self.jobs.close();
        self.jobs.wait().await;
    }
}

/// A plan and the message of it; else why it has none.
fn message(plan: Arc<dyn ExecutionPlan>) -> std::result::Result<(Arc<dyn ExecutionPlan>, Vec<u8>), String> {
    let unsaid = |error: DataFusionError| {
        tracing::debug!(%error, "a plan has no message");
        // The whole plan follows, with all of its files.
        let text = error.strip_backtrace();
        let text = text.split(". Plan: ").next().unwrap_or_default();
        format!("a part of its plan can't be sent to executors ({})", text.chars().take(WHY_CHARS_MAX).collect::<String>())
    };
    let plan = marked(plan).map_err(unsaid)?;
    let node = PhysicalPlanNode::try_from_physical_plan(Arc::clone(&plan), &Codec::default()).map_err(unsaid)?;
    let mut encoded = Vec::new();
    node.try_encode(&mut encoded).map_err(unsaid)?;
    match is_too_deep(node) {
        true => Err("its plan nests too deep to be sent: write parts of it to tables of their own".to_string()),
        false => Ok((plan, encoded)),
    }
}

/// Whether a plan nests deeper than those who receive it read messages.
fn is_too_deep(node: PhysicalPlanNode) -> bool {
    let around = (0..WRAPPERS_MAX).fold(node, |input, _| {
        let wrapper = CoalescePartitionsExecNode { input: Some(Box::new(input)), fetch: None };
        PhysicalPlanNode { physical_plan_type: Some(PhysicalPlanType::Merge(Box::new(wrapper))) }
    });
    let mut bytes = Vec::new();
    around.try_encode(&mut bytes).and_then(|()| PhysicalPlanNode::try_decode(&bytes)).is_err()
}

/// The first rows of a query, before any is given out: all of a small answer, whose executors may go away while it is read.
async fn held(rows: &mut Rows) -> Result<Vec<RecordBatch>, DataFusionError> {
    let (mut held, mut bytes) = (Vec::new(), 0);
    while bytes < HELD_BYTES_MAX {
        let Some(batch) = rows.try_next().await? else { break };
        bytes += batch.get_array_memory_size();
        held.push(batch);
    }
    Ok(held)
}

/// A job on the cluster; it is cancelled when this is dropped before its end.
struct RunningJob {
    at: At,
    operation: OperationId,
    ended: bool,
    counted: TaskTrackerToken,
    _watching: AbortOnDropHandle<()>,
}

impl RunningJob {
    fn end(&mut self) {
        self.ended = true;
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let (control, id, counted) = (self.at.control(), format!("{:016x}", self.operation.0), self.counted.clone());
        // Bounded by the question's deadline and the tries.
        forebay_runtime::spawn_left(async move {
            let _counted = counted;
            for _ in 0..CANCEL_TRIES {
                match control.cancel(&id).await {
                    // It is being planned, or over.
                    Err(error) if error.kind() == ErrorKind::NotFound => forebay_runtime::time::sleep(LOOK).await,
                    Err(error) => return tracing::debug!(%error, "a job was not cancelled"),
                    Ok(()) => return,
                }
            }
        });
    }
}

async fn watch(at: At, operation: OperationId, progress: Arc<Mutex<Progress>>) {
    loop {
        forebay_runtime::time::sleep(LOOK).await;
        let Ok(jobs) = at.control().jobs().await else { continue };
        if let Some(job) = jobs.iter().rev().find(|job| job.operation == operation.0) {
            *progress.lock() =
                Progress { bytes_planned: job.bytes, bytes_read: job.bytes_done, tasks: job.tasks, tasks_done: job.tasks_done };
        }
    }
}

/// Whether a query of which no row was given out yet failed with what was lost on the way.
fn runs_again(error: &DataFusionError) -> bool {
    let text = error.to_string();
    text.contains(RUN_AGAIN) || is_gone(&text)
}

/// Gives an error from the cluster, which comes as text, back the kind that tells the caller what to do. What transports say is for
/// the log.
fn sorted(error: DataFusionError) -> DataFusionError {
    let text = error.strip_backtrace();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let kind = match () {
        () if says(&["Precondition", "has another version", "was overwritten", "kind: Conflict"]) => ErrorKind::Conflict,
        () if says(&["code: PermissionDenied"]) => return denied(&text),
        () if runs_again(&error) => {
            tracing::warn!(%error, "processes of the cluster went away from a query");
            let what = "an executor or the scheduler went away while the query ran or its rows were read: see that they run \
                        (`forebay jobs`, `forebay status`), and run the query again";
            return DataFusionError::External(Box::new(Error::retry(what)));
        }
        () if says(&["kind: DataLost"]) => ErrorKind::DataLost,
        () if says(&["cancelled", "Cancelled"]) => ErrorKind::Closed,
        () if says(&["GrpcConnectionError", "tcp connect error", "Connection refused", "transport error"]) => ErrorKind::Retry,
        () => return error,
    };
    DataFusionError::External(Box::new(Error::new(kind, text)))
}

fn denied(text: &str) -> DataFusionError {
    tracing::info!(text, "the scheduler refuses the query");
    let what = "the scheduler or an executor refuses the query: that takes a token that may read all mounts";
    DataFusionError::External(Box::new(Error::denied(what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_too_often_is_to_be_asked_for_again() {
        let error = DataFusionError::Execution(format!("Job 1 failed: {RUN_AGAIN}: Ipc error"));
        assert!(runs_again(&error));
        let DataFusionError::External(told) = sorted(error) else { panic!("no kind is told") };
        assert_eq!(told.downcast_ref::<Error>().map(Error::kind), Some(ErrorKind::Retry));
    }

    #[test]
    fn what_a_task_says_of_temporary_data_keeps_its_kind() {
        for error in [
            Error::conflict("/tmp/x: it was replaced while it was read: read it again"),
            Error::data_lost("/tmp/x: worker 3, which had it, is gone: make it again"),
        ] {
            let said = format!("Job 1 failed: Task failed due to runtime execution error: {error:?}");
            let DataFusionError::External(told) = sorted(DataFusionError::Execution(said)) else { panic!("no kind is told") };
            assert_eq!(told.downcast_ref::<Error>().map(Error::kind), Some(error.kind()));
        }
    }
}
