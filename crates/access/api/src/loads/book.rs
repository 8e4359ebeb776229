//! The loads that are known: those that go on, and the last ones that are over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use forebay_types::{Error, ForebayPath, Result};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::task::AbortOnDropHandle;

use super::{LoadAsked, LoadProgress, PLACES};

/// Loads that are over and still known.
const OVER_MAX: usize = 100;
/// What a load may be at, as it is written.
const STATES: [&str; 5] = ["planning", "running", "done", "failed", "cancelled"];

/// A load: what was asked, and how far it is.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct LoadState {
    /// What it is named by.
    pub(super) id: String,
    /// What is brought, with all that is below it.
    path: String,
    /// Only these columns; all where there are none.
    columns: Vec<String>,
    /// Only what may have rows of which this is true.
    #[serde(rename = "where")]
    condition: Option<String>,
    /// Who has asked for it.
    who: String,
    /// `planning`, `running`, and then `done`, `failed` or `cancelled`.
    #[schemars(extend("enum" = STATES))]
    pub(super) state: &'static str,
    /// Why it failed; empty otherwise.
    error: String,
    /// Objects of which something is brought, from when it runs.
    objects: u64,
    /// Bytes that will be in the tiers, from when it runs.
    bytes: u64,
    /// Of these, bytes that are there.
    done_bytes: u64,
    /// Bytes that came from shared storage for it; known when it is done.
    fetched_bytes: u64,
    /// How long it has been, or has taken.
    seconds: f64,
}

/// One load, for who does it and for who looks.
pub(super) struct Known {
    id: String,
    who: String,
    pub(super) asked: LoadAsked,
    began: Instant,
    bytes_done: AtomicU64,
    now: Mutex<Now>,
}

struct Now {
    stage: Stage,
    objects: u64,
    bytes: u64,
    /// How long it took, once it is over.
    seconds: Option<f64>,
}

enum Stage {
    Planning,
    Running,
    Done { fetched: u64 },
    Failed(Error),
    Cancelled,
}

impl Known {
    pub(super) fn new(who: String, asked: LoadAsked) -> Arc<Self> {
        let (id, began) = (format!("{:016x}", forebay_runtime::random::<u64>()), forebay_runtime::now());
        let now = Mutex::new(Now { stage: Stage::Planning, objects: 0, bytes: 0, seconds: None });
        Arc::new(Self { id, who, asked, began, bytes_done: AtomicU64::new(0), now })
    }

    /// It is so far.
    pub(super) fn is_at(&self, progress: LoadProgress) {
        let LoadProgress { objects, bytes, bytes_done } = progress;
        self.bytes_done.fetch_max(bytes_done, Relaxed);
        let mut now = self.now.lock();
        if matches!(now.stage, Stage::Planning) {
            (now.stage, now.objects, now.bytes) = (Stage::Running, objects, bytes);
        }
        let goes_on = matches!(now.stage, Stage::Planning | Stage::Running);
        assert_eq!(goes_on, now.seconds.is_none(), "what is over does not go on");
    }

    /// It has ended, with the bytes that it fetched.
    pub(super) fn ended(&self, outcome: Result<u64>) {
        self.over(match outcome {
            Ok(fetched) => Stage::Done { fetched },
            Err(error) => Stage::Failed(error),
        });
    }

    /// What it is once stays so.
    fn over(&self, stage: Stage) {
        let mut now = self.now.lock();
        if now.seconds.is_none() {
            (now.stage, now.seconds) = (stage, Some(self.began.elapsed().as_secs_f64()));
        }
    }

    fn is_over(&self) -> bool {
        self.now.lock().seconds.is_some()
    }

    pub(super) fn state(&self) -> LoadState {
        let now = self.now.lock();
        let (state, error, fetched_bytes) = match &now.stage {
            Stage::Planning => (0, String::new(), 0),
            Stage::Running => (1, String::new(), 0),
            Stage::Done { fetched } => (2, String::new(), *fetched),
            Stage::Failed(error) => (3, error.to_string(), 0),
            Stage::Cancelled => (4, String::new(), 0),
        };
        LoadState {
            id: self.id.clone(),
            path: self.asked.path.to_string(),
            columns: self.asked.columns.clone(),
            condition: self.asked.condition.clone(),
            who: self.who.clone(),
            state: STATES[state],
            error,
            objects: now.objects,
            bytes: now.bytes,
            done_bytes: self.bytes_done.load(Relaxed),
            fetched_bytes,
            seconds: now.seconds.unwrap_or_else(|| self.began.elapsed().as_secs_f64()),
        }
    }
}

/// All that are known, the oldest first. Those that go on end with it.
#[derive(Default)]
pub(super) struct Book(Mutex<VecDeque<Entry>>);

struct Entry {
    load: Arc<Known>,
    /// What does it; none once somebody has ended it.
    task: Option<AbortOnDropHandle<()>>,
}

impl Book {
    /// Has a load done, and knows it from now on. The oldest of those that are over is forgotten where there are many.
    pub(super) fn begin(&self, load: Arc<Known>, work: impl Future<Output = ()> + Send + 'static) {
        let mut entries = self.0.lock();
        if entries.iter().filter(|entry| entry.load.is_over()).count() >= OVER_MAX
            && let Some(oldest) = entries.iter().position(|entry| entry.load.is_over())
        {
            entries.remove(oldest);
        }
        let task = Some(AbortOnDropHandle::new(forebay_runtime::spawn(work)));
        entries.push_back(Entry { load, task });
        let known_max = OVER_MAX + PLACES.all;
        assert!(entries.len() <= known_max, "{} loads are known, and {known_max} are over or have a place", entries.len());
    }

    /// Those that `may` be seen, by who has asked for them and what they bring.
    pub(super) fn list(&self, may: impl Fn(&str, &ForebayPath) -> bool) -> Vec<LoadState> {
        let is_seen = |load: &Known| may(&load.who, &load.asked.path);
        self.0.lock().iter().filter(|entry| is_seen(&entry.load)).map(|entry| entry.load.state()).collect()
    }

    /// Ends a load that goes on; what it is then. None where none of this name `may` be ended, by who has asked for it and what it brings.
    pub(super) fn cancel(&self, id: &str, may: impl Fn(&str, &ForebayPath) -> bool) -> Option<LoadState> {
        let mut entries = self.0.lock();
        let is_it = |load: &Known| load.id == id && may(&load.who, &load.asked.path);
        let entry = entries.iter_mut().find(|entry| is_it(&entry.load))?;
        entry.load.over(Stage::Cancelled);
        drop(entry.task.take());
        Some(entry.load.state())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(who: &str) -> Arc<Known> {
        Known::new(who.into(), LoadAsked { path: "/lake/x".parse().unwrap(), columns: Vec::new(), condition: None })
    }

    #[test]
    fn what_a_load_is_once_it_is_over_stays_so() {
        let at = |bytes_done| LoadProgress { objects: 2, bytes: 10, bytes_done };
        let done = load("a");
        assert_eq!(done.state().state, "planning");
        // Parts end in any order.
        for bytes in [0, 8, 4] {
            done.is_at(at(bytes));
        }
        let state = done.state();
        assert_eq!((state.state, state.objects, state.bytes, state.done_bytes), ("running", 2, 10, 8));
        done.is_at(at(10));
        done.ended(Ok(7));
        done.ended(Err(Error::retry("late")));
        let state = done.state();
        assert_eq!((state.state, state.fetched_bytes, state.done_bytes, state.error.as_str()), ("done", 7, 10, ""));
        let failed = load("a");
        failed.ended(Err(Error::not_found("/lake/x: nothing")));
        assert_eq!(failed.state().state, "failed");
        assert!(failed.state().error.contains("/lake/x: nothing"));
    }

    #[tokio::test]
    async fn one_that_is_ended_is_not_done_any_more() {
        let (book, goes_on) = (Book::default(), load("a"));
        let (told, mut waits) = tokio::sync::mpsc::channel::<()>(1);
        book.begin(Arc::clone(&goes_on), async move {
            std::future::pending::<()>().await;
            drop(told);
        });
        let id = goes_on.state().id;
        assert!(book.cancel(&id, |who, _| who == "b").is_none() && book.cancel("none", |_, _| true).is_none());
        assert_eq!(book.cancel(&id, |who, _| who == "a").unwrap().state, "cancelled");
        assert!(waits.recv().await.is_none(), "its task has ended");
        goes_on.ended(Ok(1));
        assert_eq!(book.list(|_, _| true)[0].state, "cancelled");
        assert!(book.list(|who, _| who == "b").is_empty());
    }

    #[tokio::test]
    async fn the_oldest_that_are_over_are_forgotten_and_none_that_goes_on() {
        let (book, goes_on) = (Book::default(), load("a"));
        book.begin(Arc::clone(&goes_on), std::future::pending());
        let over: Vec<_> = (0..OVER_MAX + 3).map(|_| load("a")).collect();
        for load in &over {
            load.ended(Ok(0));
            book.begin(Arc::clone(load), std::future::ready(()));
        }
        let listed: Vec<String> = book.list(|_, _| true).into_iter().map(|load| load.id).collect();
        assert_eq!(listed.len(), 1 + OVER_MAX);
        assert_eq!(listed[0], goes_on.state().id);
        assert_eq!(listed[1], over[3].state().id);
    }
}
