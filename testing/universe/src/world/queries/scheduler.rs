//! A scheduler: looks at its jobs by the steps of `access/jobs`, as `scheduler/policy` and `scheduler/watch` of `access/distributed` do around
//! Ballista.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use forebay_client::Client;
use forebay_jobs::serving::announce;
use forebay_jobs::{Begins, Books, Carrier, Cut, Missed, Outcome, RUN_AGAIN, Sender, TaskName, Versions, blocks, follow, found};
use forebay_oracle::Rule;
use forebay_runtime::time::sleep;
use forebay_scheduling::{BlockRange, CopyRules, ScheduleSettings};
use parking_lot::Mutex;

use super::graph::Graph;
use super::says::{Ended, OfScheduler, Query, ToScheduler};
use super::{scheduler_address, wire};
use crate::world::course::Course;
use crate::world::hosts;

/// How often jobs and executors are looked at.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// It says what it has at hand once in so many looks.
const SAID_EVERY: u32 = 10;

/// A scheduler that runs.
pub(super) struct Serving {
    pub(super) client: Client,
    pub(super) course: Arc<Course>,
    pub(super) books: Arc<Mutex<Books>>,
    pub(super) carrier: Arc<Carrier>,
    /// Locked before the books.
    pub(super) jobs: Mutex<Jobs>,
    /// Tasks that find out what a stage reads.
    finding: AtomicU64,
    /// Of this process: names of its jobs begin with it.
    started: u64,
}

/// The engine's side.
#[derive(Default)]
pub(super) struct Jobs {
    /// In the order in which they came.
    pub(super) graphs: BTreeMap<String, Graph>,
    over: BTreeMap<String, Ended>,
    /// Runs that executors are to end.
    pub(super) ends: BTreeMap<String, Vec<TaskName>>,
    /// Tasks that executors should run which say that they have nothing to do, and how often each has said so by now.
    pub(super) idle: BTreeMap<String, BTreeMap<TaskName, u32>>,
    named: u64,
}

/// A scheduler's process.
pub(in crate::world) async fn scheduler(number: usize, course: Arc<Course>) {
    let own = scheduler_address(number);
    course.queries.says(&own, Some("it has just begun".to_owned()));
    let client = hosts::client(course.crowd.has_standby).await;
    let mut books = Books::new(ScheduleSettings::default());
    // Of as few slots as there are here, one has a copy at a time.
    books.copies.rules = Some(CopyRules::default());
    let books = Arc::new(Mutex::new(books));
    let carrier = Carrier::new(Arc::clone(&books), client.clone(), true);
    let (jobs, finding, started) = (Mutex::default(), AtomicU64::new(0), forebay_runtime::random());
    let serving =
        Arc::new(Serving { client: client.clone(), course, books: Arc::clone(&books), carrier, jobs, finding, started });
    let of_calls = Arc::clone(&serving);
    let answer = move |asked: ToScheduler| {
        let serving = Arc::clone(&of_calls);
        async move {
            match asked {
                ToScheduler::Run(query) => OfScheduler::Over(serving.run(query).await),
                ToScheduler::Poll(poll) => OfScheduler::Work(serving.poll(poll).await),
            }
        }
    };
    let watching = serving.watches(&own);
    let following = follow(client.clone(), books);
    futures::future::join4(announce(client, own.clone()), following, watching, wire::serve(&own, answer)).await;
}

/// Somebody waits for a job. Where he goes away it ends.
struct Asked {
    serving: Arc<Serving>,
    job: String,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let (mut jobs, mut books) = (self.serving.jobs.lock(), self.serving.books.lock());
        end(&mut jobs, &mut books, &self.job, Ended::Failed("who asked for it is gone".to_owned()));
        jobs.over.remove(&self.job);
    }
}

impl Serving {
    /// Runs a query to its end.
    async fn run(self: &Arc<Self>, query: Query) -> Ended {
        let job = {
            let mut jobs = self.jobs.lock();
            jobs.named += 1;
            let job = format!("{:016x}-{:08}", self.started, jobs.named);
            jobs.graphs.insert(job.clone(), Graph::new(job.clone(), query));
            job
        };
        let asked = Asked { serving: Arc::clone(self), job };
        self.look();
        self.carrier.go();
        loop {
            sleep(LOOK).await;
            let over = self.jobs.lock().over.remove(&asked.job);
            if let Some(ended) = over {
                return ended;
            }
        }
    }

    async fn watches(self: &Arc<Self>, own: &str) {
        for look in 0_u32.. {
            sleep(LOOK).await;
            let silent = self.books.lock().misses();
            silent.iter().for_each(|executor| self.executor_lost(executor));
            self.carrier.let_go();
            self.look();
            self.end_spoilt();
            self.carrier.go();
            self.end_unwanted();
            if look.is_multiple_of(SAID_EVERY) {
                self.course.queries.says(own, self.at_hand());
            }
        }
    }

    /// Shows the books what waits.
    pub(super) fn look(self: &Arc<Self>) {
        let mut begin = Vec::new();
        {
            let (mut jobs, mut books) = (self.jobs.lock(), self.books.lock());
            for (id, graph) in &mut jobs.graphs {
                let (stage, attempt) = graph.now();
                let Some(moved) = books.sees_job(id, || graph.query.ticket.clone()) else { continue };
                graph.moved(&moved);
                if !books.is_unseen(id, stage, graph.mark()) {
                    continue;
                }
                let (partitions, reads_pieces) = (graph.partitions(), stage == 1);
                let begins = || {
                    let inputs = (!reads_pieces).then(|| Arc::new(vec![Vec::new(); partitions]));
                    Begins { cut: graph.cut(), kind: format!("stage {stage}"), inputs, may_be_copied: true }
                };
                if books.sees_stage((id.as_str(), stage), graph.mark(), || graph.pending().to_vec(), begins) {
                    begin.push((id.clone(), attempt, graph.query.clone()));
                }
            }
        }
        for (job, attempt, query) in begin {
            self.finding.fetch_add(1, SeqCst);
            forebay_runtime::spawn(Arc::clone(self).find_inputs(job, attempt, query));
        }
    }

    /// Finds out beside the way what the first stage reads; its tasks wait for that.
    async fn find_inputs(self: Arc<Self>, job: String, attempt: usize, query: Query) {
        let workers = self.books.lock().workers_beside();
        let mut versions = Versions::new();
        let mut partitions: Vec<Vec<BlockRange>> = Vec::new();
        for piece in &query.pieces {
            let (version, mut all) = (Arc::new(piece.version.clone()), Vec::new());
            blocks(&version, std::iter::once(piece.start..piece.start + piece.len), &mut versions, &mut all);
            partitions.push(all);
        }
        let inputs = found(&self.client, partitions, &versions, &workers).await;
        self.books.lock().decide("what a stage reads", Sender::Job(&job), |books| {
            books.inputs_known(&job, 1, attempt, (Arc::new(inputs), Cut::Each), versions);
        });
        self.look();
        self.carrier.go();
        self.finding.fetch_sub(1, SeqCst);
    }

    /// Gives the tasks of an executor that is lost to others, or has jobs run again.
    fn executor_lost(&self, executor: &str) {
        let (mut jobs, mut books) = (self.jobs.lock(), self.books.lock());
        let mut over = Vec::new();
        for (id, graph) in &mut jobs.graphs {
            let (missed, moved) = books.loses(id, executor, &graph.passing_on());
            graph.moved(&moved);
            match missed {
                Missed::PassedOn => over.push(id.clone()),
                Missed::Outputs => graph.reset(executor, true),
                Missed::Running => graph.reset(executor, false),
            }
        }
        for job in over {
            end(&mut jobs, &mut books, &job, Ended::Failed(RUN_AGAIN.to_owned()));
        }
        jobs.ends.remove(executor);
        jobs.idle.remove(executor);
    }

    /// Ends jobs that have to run again as a whole.
    fn end_spoilt(&self) {
        let (mut jobs, mut books) = (self.jobs.lock(), self.books.lock());
        // In an order that the seed repeats.
        let spoilt: BTreeSet<String> = books.spoilt().into_iter().collect();
        for job in spoilt {
            end(&mut jobs, &mut books, &job, Ended::Failed("it can't go on".to_owned()));
        }
    }

    /// Ends runs that nobody waits for, and finds tasks that are late.
    fn end_unwanted(&self) {
        let (mut jobs, mut books) = (self.jobs.lock(), self.books.lock());
        for (name, executor) in books.unwanted() {
            if books.executors.contains_key(&executor) {
                jobs.ends.entry(executor).or_default().push(name);
            }
        }
    }

    /// What must not be there when nobody asks for anything.
    fn at_hand(&self) -> Option<String> {
        let (jobs, books) = (self.jobs.lock(), self.books.lock());
        let counts = books.counts();
        let (coming, finding) = (self.carrier.shown().len(), self.finding.load(SeqCst));
        let (known, over) = (jobs.graphs.len(), jobs.over.len());
        let here = [known as u64, over as u64, coming as u64, finding];
        let of_books = [counts.jobs_running, counts.tasks_running, counts.arriving_bytes];
        (here != [0; 4] || of_books != [0; 3]).then(|| {
            format!(
                "{known} jobs, {over} answers, {coming} transfers, {finding} tasks that find inputs, and of its books {counts:?}"
            )
        })
    }

    /// Something must not have happened.
    pub(super) fn wrong(&self, what: String) {
        self.course.wrong(Rule::RowsOnce, what);
    }
}

/// A job is over. Nothing where it is not there any more.
pub(super) fn end(jobs: &mut Jobs, books: &mut Books, id: &str, ended: Ended) {
    let Some(graph) = jobs.graphs.remove(id) else { return };
    for (executor, name) in graph.running() {
        if books.executors.contains_key(&executor) {
            jobs.ends.entry(executor).or_default().push(name);
        }
    }
    let outcome = match &ended {
        Ended::Done(_) => Outcome::Done { stage: None, rows: graph.rows() },
        Ended::Failed(_) => Outcome::Failed,
    };
    let ended = books.truth(id, outcome).map_or(ended, |truth| Ended::Failed(truth.to_owned()));
    let (state, error) = match &ended {
        Ended::Done(_) => ("done", String::new()),
        Ended::Failed(error) => ("failed", error.clone()),
    };
    books.decide("the end of a job", Sender::Job(id), |books| books.job_over(id, state, error));
    jobs.over.insert(id.to_owned(), ended);
}
