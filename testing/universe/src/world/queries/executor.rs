//! An executor: asks for tasks and runs them. What they make for others lies in files on its disk, and goes with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_jobs::serving::follow;
use forebay_jobs::{Done, Said, TaskName, Word};
use forebay_oracle::contents::{self, Seen};
use forebay_runtime::random_range;
use forebay_runtime::time::{sleep, timeout};
use forebay_types::{Error, WorkerId};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use xxhash_rust::xxh3::xxh3_64;

use super::says::{Fetch, OfScheduler, Order, Output, Poll, Row, ToScheduler, Told};
use super::wire::Unanswered;
use super::{executor_address, scheduler_address, wire};
use crate::world::course::Course;
use crate::world::hosts;

/// Tasks at once.
const SLOTS: u32 = 2;
/// How often one with a free slot asks, and one that has none.
const ASKS: Duration = Duration::from_millis(100);
const BUSY_ASKS: Duration = Duration::from_secs(5);
/// So long it waits for an answer, and rests where there is none.
const ASKED_WITHIN: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_millis(250);
/// What a task computes for, in milliseconds, and one in so many that is slow.
const COMPUTES_MS: std::ops::Range<u64> = 20..300;
const SLOW_ONE_IN: u32 = 12;
const SLOW_MS: std::ops::Range<u64> = 3_000..7_000;
const SAID_EVERY: Duration = Duration::from_secs(1);

/// An executor that runs.
struct Running {
    id: String,
    address: String,
    folder: PathBuf,
    client: Client,
    state: Mutex<State>,
    /// A task is over.
    over: Notify,
}

#[derive(Default)]
struct State {
    tasks: BTreeMap<TaskName, AbortHandle>,
    told: Vec<Told>,
}

/// Why a task has no rows.
enum Failed {
    LostInput(String),
    BrokenOff,
    ByItself(String),
}

/// An executor's process, beside one of the workers.
pub(in crate::world) async fn executor(number: usize, folder: PathBuf, course: Arc<Course>) {
    let address = executor_address(number);
    course.queries.says(&address, Some("it has just begun".to_owned()));
    let client = hosts::client(course.crowd.has_standby).await;
    let worker = beside(&client, number % course.crowd.workers).await;
    let id = format!("{:016x}-{:016x}", worker.0, forebay_runtime::random::<u64>());
    let folder = folder.join(&id);
    std::fs::create_dir_all(&folder).expect("a folder of the world's");
    let (state, over) = (Mutex::default(), Notify::new());
    let running = Arc::new(Running { id, address: address.clone(), folder, client: client.clone(), state, over });
    let (moves, scheduler) = watch::channel(scheduler_address(0));
    let of_calls = Arc::clone(&running);
    let answer = move |asked: Fetch| {
        let rows = of_calls.rows_of(&asked.file);
        async move { rows }
    };
    let (polling, saying) = (running.polls(scheduler), running.says(&course));
    futures::future::join4(follow(client, moves), polling, saying, wire::serve(&address, answer)).await;
}

/// The worker of that number, as soon as there is one.
async fn beside(client: &Client, number: usize) -> WorkerId {
    let location = format!("host{number}");
    loop {
        if let Some(worker) = client.view().workers.iter().find(|worker| worker.location == location) {
            return worker.id;
        }
        sleep(REST).await;
    }
}

impl Running {
    /// Asks for tasks, and begins with them.
    async fn polls(self: &Arc<Self>, scheduler: watch::Receiver<String>) {
        loop {
            let poll = self.question();
            let has_free = poll.free > 0;
            let to = scheduler.borrow().clone();
            match wire::ask(&to, &ToScheduler::Poll(poll), ASKED_WITHIN).await {
                Ok(OfScheduler::Work(work)) => {
                    work.ends.iter().for_each(|name| self.ends(name));
                    work.tasks.into_iter().for_each(|order| self.begins(order));
                    let pause = if has_free { ASKS } else { BUSY_ASKS };
                    let _ = timeout(pause, self.over.notified()).await;
                }
                // What it told is lost, as in production.
                Ok(OfScheduler::Over(_)) | Err(_) => sleep(REST).await,
            }
        }
    }

    fn question(&self) -> Poll {
        let mut state = self.state.lock();
        let told = std::mem::take(&mut state.told);
        let free = SLOTS.saturating_sub(state.tasks.len() as u32);
        Poll { executor: self.id.clone(), slots: SLOTS, free, told }
    }

    fn begins(self: &Arc<Self>, order: Order) {
        let name = order.name.clone();
        let running = Arc::clone(self);
        let task = forebay_runtime::spawn(async move {
            let (name, began) = (order.name.clone(), forebay_runtime::now());
            let made = running.run(order).await;
            running.ended(name, began.elapsed(), made);
        });
        self.state.lock().tasks.insert(name, task.abort_handle());
    }

    /// Ends a run that nobody waits for.
    fn ends(&self, name: &TaskName) {
        let task = self.state.lock().tasks.remove(name);
        if let Some(task) = task {
            task.abort();
            self.tells(name.clone(), Duration::ZERO, Err(Failed::ByItself("it was ended".to_owned())));
        }
    }

    fn ended(&self, name: TaskName, took: Duration, made: Result<(Output, Done), Failed>) {
        // One that was ended meanwhile has told so.
        if self.state.lock().tasks.remove(&name).is_some() {
            self.tells(name, took, made);
        }
    }

    fn tells(&self, name: TaskName, took: Duration, made: Result<(Output, Done), Failed>) {
        let (said, output, lost_of, error) = match made {
            Ok((output, done)) => (Said::Done(done), Some(output), None, String::new()),
            Err(Failed::LostInput(of)) => (Said::LostInput, None, Some(of), "what it reads is gone".to_owned()),
            Err(Failed::BrokenOff) => (Said::BrokenOff, None, None, "a connection broke".to_owned()),
            Err(Failed::ByItself(error)) => (Said::Failed, None, None, error),
        };
        self.state.lock().told.push(Told { word: Word { name, took, said }, output, lost_of, error });
        self.over.notify_one();
    }

    /// Runs a task; where its rows are.
    async fn run(&self, order: Order) -> Result<(Output, Done), Failed> {
        let mut rows = self.read(&order).await?;
        rows.extend(self.fetch(&order).await?);
        let is_slow = random_range(0..SLOW_ONE_IN) == 0;
        let computes_ms = if is_slow { random_range(SLOW_MS) } else { random_range(COMPUTES_MS) };
        sleep(Duration::from_millis(computes_ms)).await;
        let TaskName { job, stage, attempt, task } = &order.name;
        let file = format!("{job}-{stage}-{attempt}-{task}");
        let bytes = postcard::to_stdvec(&rows).map_err(|error| Failed::ByItself(error.to_string()))?;
        std::fs::write(self.folder.join(&file), &bytes).map_err(|error| Failed::ByItself(error.to_string()))?;
        let done = Done { in_files: true, rows: rows.len() as u64, bytes: bytes.len() as u64, operators: 0 };
        let output = Output { executor: self.id.clone(), address: self.address.clone(), file };
        Ok((output, done))
    }

    /// Reads its pieces where the schedule has brought them: a row each.
    async fn read(&self, order: &Order) -> Result<Vec<Row>, Failed> {
        let failed = |error: Error| Failed::ByItself(format!("{}: {error}", error.kind()));
        let _places = self.client.read_at(order.operation, order.places.iter().copied());
        let mut rows = Vec::new();
        for (place, piece) in &order.pieces {
            let range = piece.start..piece.start + piece.len;
            let bytes = self.client.read(order.operation, &piece.version, range).await.map_err(failed)?;
            let version = match contents::identify(piece.key, piece.start, piece.len, &bytes) {
                Seen::Version(version) => version,
                Seen::Mixed { .. } | Seen::Length { .. } | Seen::Foreign => 0,
            };
            rows.push(Row { place: *place, version, hash: xxh3_64(&bytes) });
        }
        Ok(rows)
    }

    /// Fetches what the stage before has made, and keeps the rows of its own partitions.
    async fn fetch(&self, order: &Order) -> Result<Vec<Row>, Failed> {
        let mut all = Vec::new();
        for source in &order.sources {
            let rows = match source.executor == self.id {
                true => Ok(self.rows_of(&source.file)),
                false => wire::ask(&source.address, &Fetch { file: source.file.clone() }, ASKED_WITHIN).await,
            };
            let rows: Option<Vec<Row>> = match rows {
                Ok(rows) => rows,
                Err(Unanswered::NoWay) => None,
                Err(Unanswered::BrokenOff) => return Err(Failed::BrokenOff),
            };
            all.extend(rows.ok_or_else(|| Failed::LostInput(source.executor.clone()))?);
        }
        all.retain(|row| order.partitions.contains(&(row.place % order.of)));
        Ok(all)
    }

    /// None where it has no such file.
    fn rows_of(&self, file: &str) -> Option<Vec<Row>> {
        let bytes = std::fs::read(self.folder.join(file)).ok()?;
        postcard::from_bytes(&bytes).ok()
    }

    /// Says again and again what it has at hand.
    async fn says(&self, course: &Course) {
        loop {
            sleep(SAID_EVERY).await;
            course.queries.says(&self.address, self.at_hand());
        }
    }

    /// What must not be there when nobody asks for anything.
    fn at_hand(&self) -> Option<String> {
        let state = self.state.lock();
        let (tasks, told) = (state.tasks.len(), state.told.len());
        (tasks + told > 0).then(|| format!("{tasks} tasks, {told} words"))
    }
}
