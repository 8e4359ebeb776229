//! Ballista's hook for choosing tasks: shows the schedule what waits, has inputs found out, and binds what the schedule gives.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::serde::protobuf::{AvailableVcores, job_status};
use ballista_scheduler::cluster::{BoundTask, DistributionPolicy};
use ballista_scheduler::state::execution_graph::ExecutionGraphBox;
use ballista_scheduler::state::execution_stage::{ExecutionStage, RunningStage};
use ballista_scheduler::state::task_manager::JobInfoCache;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use forebay_client::Client;
use forebay_jobs::{Begins, Books, Carrier, Chosen, Cut, Sender, TaskName, Ticket, caught};
use forebay_sql::{Engine, drafts_to_send};
use forebay_types::{Error, OperationId};
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::bind::{Scans, bind, bind_copy, collapses, mark, pending, running_task, take, tell_moved};
use super::inputs::of_stage;
use super::merged;
use super::shuffles::{Shuffles, is_passed_on};
use super::whole::differs;
use crate::travel;

/// Longer than this nobody waits for Ballista to take in what it is told: it has much to do then.
const SETTLED: Duration = Duration::from_millis(100);
/// How often a question looks at all jobs, where nobody has since: who does it beside the questions (`watch`) waits for much else.
const LOOK: Duration = Duration::from_millis(50);

/// What Ballista asks for tasks: it looks what waits, and gives what the schedule says.
///
/// In pull mode it is asked at every poll, for one executor, with no lock of Ballista's held; so it may look into the jobs'
/// graphs one after the other. A poll looks at the jobs that its executor has told of and at new ones, others change by other polls; what changes
/// by itself is seen by the next look at all of them. Of a job stages are looked at that have come on since, by their [`Mark`](forebay_jobs::Mark).
pub(crate) struct Policy {
    pub(super) books: Arc<Mutex<Books>>,
    pub(super) carrier: Arc<Carrier>,
    client: Client,
    engine: Engine,
    shuffles: Arc<Shuffles>,
    /// What a task reads at least of what other stages have left.
    task_bytes: u64,
    scans: Scans,
    /// One at a time: what the schedule gives must be bound before the next is asked for. When all jobs were looked at last.
    turn: tokio::sync::Mutex<Option<Instant>>,
    finding: Mutex<JoinSet<()>>,
}

forebay_types::shown!(Policy);

impl Policy {
    pub(super) fn new(
        books: Arc<Mutex<Books>>,
        carrier: Arc<Carrier>,
        client: Client,
        engine: Engine,
        shuffles: Arc<Shuffles>,
        task_bytes: u64,
    ) -> Self {
        let (scans, turn, finding) = (Scans::default(), tokio::sync::Mutex::default(), Mutex::default());
        Self { books, carrier, client, engine, shuffles, task_bytes, scans, turn, finding }
    }

    /// Looks at all jobs, so that what a new one reads is on its way before an executor asks for a task: busy ones ask when they
    /// are done with one.
    pub(super) async fn look_ahead(&self, jobs: &HashMap<JobId, JobInfoCache>) {
        let mut looked = self.turn.lock().await;
        *looked = Some(forebay_runtime::now());
        self.look_at_jobs(jobs.keys().collect(), jobs).await;
    }

    /// Looks at the jobs of which something was told, at those that are new, and at all where that was a while ago.
    async fn look_at_told(&self, told: &HashSet<JobId>, looked: &mut Option<Instant>, jobs: &HashMap<JobId, JobInfoCache>) {
        let ids: Vec<&JobId> = if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
            *looked = Some(forebay_runtime::now());
            jobs.keys().collect()
        } else {
            let books = self.books.lock();
            let is_news = |id: &JobId| told.contains(id) || !books.jobs.contains_key::<str>(id.as_ref());
            jobs.keys().filter(|id| is_news(id)).collect()
        };
        self.look_at_jobs(ids, jobs).await;
    }

    async fn look_at_jobs(&self, mut ids: Vec<&JobId>, jobs: &HashMap<JobId, JobInfoCache>) {
        // In the order of their ids, which is that of their arrival.
        ids.sort_unstable();
        for id in ids {
            let info = &jobs[id];
            if !matches!(info.status, Some(job_status::Status::Running(_))) {
                continue;
            }
            let is_news = {
                let graph = info.execution_graph.read().await;
                has_news(&self.books.lock(), id.as_ref(), &graph)
            };
            if is_news {
                let mut graph = info.execution_graph.write().await;
                if caught(|| self.look(id, &mut graph)).is_none() {
                    self.books.lock().failed("a look at a job", Sender::Job(id.as_ref()));
                }
            }
        }
    }

    /// Tells the schedule what waits in a job.
    fn look(&self, job: &JobId, graph: &mut ExecutionGraphBox) {
        let id: &str = job.as_ref();
        let config = graph.session_config();
        let Some(moved) = self.books.lock().sees_job(id, || ticket_of(&config)) else { return };
        tell_moved(graph, moved);
        let mut seen = Vec::new();
        while let Some(next) = graph.fetch_running_stage(&seen).map(|stage| stage.stage_id) {
            seen.push(next);
            let Some(ExecutionStage::Running(stage)) = graph.stages().get(&next) else { continue };
            let (is_new, is_unseen) = {
                let mut books = self.books.lock();
                (books.is_new_stage(id, next, stage.stage_attempt_num), books.is_unseen(id, next, mark(stage)))
            };
            if is_new && let Some(what) = differs(graph.stages(), stage) {
                tracing::warn!(job = id, what, "a job runs again: its stages lost what they pass on");
                self.books.lock().decide("what stages lost", Sender::Job(id), |books| books.attempts.spoil(id));
                return;
            }
            if is_unseen {
                self.look_at(id, stage);
            }
        }
    }

    fn look_at(&self, job: &str, stage: &RunningStage) {
        let plan = &stage.plan;
        let begins = || {
            let reads_files = plan.exists(|node| Ok(node.is::<DataSourceExec>())).unwrap_or(false);
            let cut = match collapses(plan) {
                true => Cut::Whole,
                false if reads_files => Cut::Each,
                false => merged::cut(plan, stage.partitions, self.task_bytes),
            };
            let inputs = (!reads_files).then(Arc::default);
            Begins { cut, kind: kind(plan), inputs, may_be_copied: !writes(plan) }
        };
        let mut books = self.books.lock();
        if books.sees_stage((job, stage.stage_id), mark(stage), || pending(stage), begins) {
            self.find_inputs(&books, job, stage, Arc::clone(plan));
        }
    }

    /// Finds out beside the way what a stage reads; its tasks wait for that.
    fn find_inputs(&self, books: &Books, job: &str, stage: &RunningStage, plan: Arc<dyn ExecutionPlan>) {
        let Some(ticket) = books.jobs.get(job).map(|job| Arc::clone(&job.ticket)) else { return };
        let workers = books.workers_beside();
        let (engine, client, all) = (self.engine.clone(), self.client.clone(), Arc::clone(&self.books));
        let (job, id, attempt) = (job.to_string(), stage.stage_id, stage.stage_attempt_num);
        let carrier = Arc::clone(&self.carrier);
        let (total, waits, task_bytes) = (stage.pending.total_partitions(), pending(stage), self.task_bytes);
        let mut finding = self.finding.lock();
        while finding.try_join_next().is_some() {}
        finding.spawn(async move {
            let found = AssertUnwindSafe(of_stage(&engine, &client, &ticket, &plan, &workers)).catch_unwind().await;
            let found = found.unwrap_or_else(|_| Err(Error::internal("looking at it failed by a defect")));
            let (mut inputs, versions) = found.unwrap_or_else(|error| {
                tracing::warn!(job, stage = id, %error, "what a stage reads can't be told: its tasks run anywhere");
                Default::default()
            });
            inputs.resize_with(total.max(inputs.len()), Vec::new);
            all.lock().decide("what a stage reads", Sender::Job(&job), |books| {
                let cut = merged::cut_of_files(&plan, &inputs, task_bytes);
                books.inputs_known(&job, id, attempt, (Arc::new(inputs), cut), versions);
                // It was a while ago that they waited: some may run.
                books.offer(&job, id, &waits);
            });
            carrier.go();
        });
    }

    /// Waits until Ballista has taken in what an executor told with this question. It does that beside the way, and until then
    /// the stage that can run next is not there: the slot would go to another job, or stay free till the next question. Gives the jobs of which
    /// it told.
    async fn settle(&self, executor: &str, jobs: &HashMap<JobId, JobInfoCache>) -> HashSet<JobId> {
        let told = self.books.lock().take_told(executor);
        let (until, mut of) = (forebay_runtime::now() + SETTLED, HashSet::new());
        for task in told {
            let id = JobId::from(task.job.as_str());
            let Some(info) = jobs.get(&id) else { continue };
            of.insert(id);
            // Whom Ballista still takes for one that runs.
            while running_task(&*info.execution_graph.read().await, &task).is_some() && forebay_runtime::now() < until {
                forebay_runtime::time::sleep(Duration::from_millis(1)).await;
            }
        }
        of
    }

    /// Binds a task that the schedule chose; none when it does not wait any more.
    async fn bind_chosen(
        &self,
        chosen: &Chosen,
        budget: &mut AvailableVcores,
        jobs: &HashMap<JobId, JobInfoCache>,
    ) -> Option<BoundTask> {
        let job = JobId::from(chosen.job.clone());
        let info = jobs.get(&job)?;
        let mut config = self.config_of(&chosen.job, chosen.stage, info).await?;
        let mut graph = info.execution_graph.write().await;
        let session = graph.session_id().to_string();
        let stage = running_stage(&mut graph, chosen.stage)?;
        let before = mark(stage);
        let partitions = take(stage, chosen.partitions.as_deref())?;
        if let Err(error) = travel::send(&mut config, None, Some(&chosen.places)) {
            tracing::debug!(%error, "a task goes without its places");
        }
        let mut bound = bind(stage, &session, &job, budget, partitions, Arc::new(config));
        let (attempt, task, after) = (bound.1.stage_attempt_num, bound.1.key.task_id, mark(stage));
        debug_assert_eq!(after.begun, task + 1, "a task has the number after those before it");
        self.books.lock().begins(chosen, (attempt, task), (before, after));
        drop(graph);
        bound.1.plan = self.scans.given(&bound.1);
        tracing::debug!(%job, stage = chosen.stage, task = bound.1.key.task_id, executor = budget.executor_id, "task begins");
        Some(bound)
    }

    /// Gives what is left of an executor's slots, for which nothing waits, to copies of late tasks.
    async fn give_copies(&self, budget: &mut AvailableVcores, jobs: &HashMap<JobId, JobInfoCache>, bound: &mut Vec<BoundTask>) {
        while budget.vcores > 0 {
            let Some(name) = self.books.lock().choose_late(&budget.executor_id) else { return };
            match AssertUnwindSafe(self.bind_late(&name, budget, jobs)).catch_unwind().await {
                Ok(copy) => bound.extend(copy),
                Err(_) => self.books.lock().failed("giving a copy", Sender::Job(&name.job)),
            }
        }
    }

    /// Binds the copy of a late task; none when that runs no more.
    async fn bind_late(
        &self,
        name: &TaskName,
        budget: &mut AvailableVcores,
        jobs: &HashMap<JobId, JobInfoCache>,
    ) -> Option<BoundTask> {
        let info = jobs.get(&JobId::from(name.job.as_str()))?;
        let config = self.config_of(&name.job, name.stage, info).await?;
        let graph = info.execution_graph.read().await;
        running_task(&graph, name)?;
        if !self.books.lock().begins_copy(name, &budget.executor_id) {
            return None;
        }
        let mut bound = bind_copy(&graph, name, budget, Arc::new(config))?;
        debug_assert_eq!(bound.1.key.task_id, name.task, "a copy is of the task that is late");
        drop(graph);
        bound.1.plan = self.scans.given(&bound.1);
        tracing::info!(?name, executor = budget.executor_id, "a task is late: a copy of it begins");
        Some(bound)
    }

    /// What a task of a stage is sent with; none when the stage does not run.
    async fn config_of(&self, job: &str, stage: usize, info: &JobInfoCache) -> Option<SessionConfig> {
        let (mut config, is_passed_on) = {
            let graph = info.execution_graph.read().await;
            let Some(ExecutionStage::Running(running)) = graph.stages().get(&stage) else { return None };
            (running.session_config.as_ref().clone(), is_passed_on(&graph, stage, &running.output_links))
        };
        // Not with the graph: it may take seconds.
        let class = if is_passed_on { self.shuffles.of_job(job).await } else { None };
        travel::send_shuffle(&mut config, class);
        Some(config)
    }
}

/// Whether a look at a job could tell something, or has something to tell its graph.
fn has_news(books: &Books, job: &str, graph: &ExecutionGraphBox) -> bool {
    let is_news = |stage: &ExecutionStage| match stage {
        // It runs as soon as it is looked at.
        ExecutionStage::Resolved(_) => true,
        ExecutionStage::Running(stage) => !stage.pending.is_empty() && books.is_unseen(job, stage.stage_id, mark(stage)),
        ExecutionStage::UnResolved(_) | ExecutionStage::Successful(_) | ExecutionStage::Failed(_) => false,
    };
    !books.jobs.contains_key(job) || !books.moved(job).is_empty() || graph.stages().values().any(is_news)
}

/// The running stage of this number.
fn running_stage(graph: &mut ExecutionGraphBox, id: usize) -> Option<&mut RunningStage> {
    let mut others = Vec::new();
    loop {
        let found = graph.fetch_running_stage(&others)?.stage_id;
        if found == id {
            return graph.fetch_running_stage(&others);
        }
        others.push(found);
    }
}

#[async_trait]
impl DistributionPolicy for Policy {
    async fn bind_tasks(
        &self,
        budgets: Vec<&mut AvailableVcores>,
        running_jobs: Arc<HashMap<JobId, JobInfoCache>>,
    ) -> datafusion::error::Result<Vec<BoundTask>> {
        let mut bound = Vec::new();
        if running_jobs.is_empty() {
            return Ok(bound);
        }
        let mut told = HashSet::new();
        for budget in &budgets {
            told.extend(self.settle(&budget.executor_id, &running_jobs).await);
        }
        if told.is_empty() && budgets.iter().all(|budget| budget.vcores == 0) {
            // It only says that it is there.
            return Ok(bound);
        }
        let free: u64 = budgets.iter().map(|budget| u64::from(budget.vcores)).sum();
        let mut looked = self.turn.lock().await;
        self.look_at_told(&told, &mut looked, &running_jobs).await;
        for budget in budgets {
            while budget.vcores > 0 {
                let Some(chosen) = self.books.lock().choose(&budget.executor_id) else { break };
                let of = Sender::Job(&chosen.job);
                match AssertUnwindSafe(self.bind_chosen(&chosen, budget, &running_jobs)).catch_unwind().await {
                    Ok(Some(task)) => {
                        bound.push(task);
                        self.carrier.bring(&chosen.bring);
                    }
                    Ok(None) => self.books.lock().is_gone(&chosen),
                    Err(_) => self.books.lock().failed("giving a task", of),
                }
            }
            self.give_copies(budget, &running_jobs, &mut bound).await;
        }
        self.carrier.go();
        assert!(bound.len() as u64 <= free, "{} tasks go to {free} free slots", bound.len());
        Ok(bound)
    }

    fn name(&self) -> &str {
        "forebay"
    }
}

/// What came with a job's plan. One that came without (of a client of Ballista's own) reads what is current.
fn ticket_of(config: &SessionConfig) -> Ticket {
    let ticket = travel::ticket(config).unwrap_or_else(|error| {
        tracing::warn!(%error, "a job without a ticket that can be read");
        None
    });
    if let Some(ticket) = &ticket {
        // What is brought for its tasks belongs to its trace.
        forebay_trace::known(ticket.operation, ticket.trace);
    }
    ticket.unwrap_or_else(|| Ticket::silent(OperationId(0)))
}

/// Whether a stage writes what others find by themselves.
fn writes(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|node| Ok(drafts_to_send(node).is_some())).unwrap_or(true)
}

/// The kind of a stage, for its I/O rate: its operators and the folder of its first file.
fn kind(plan: &Arc<dyn ExecutionPlan>) -> String {
    let mut kind = String::new();
    let _ = plan.apply(|node| {
        kind += node.name();
        kind.push(' ');
        if let Some(folder) = forebay_sql::scanned_folder(node) {
            kind += &folder;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    kind
}
