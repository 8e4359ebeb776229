//! A shard that answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;
use forebay_protocol::ShardState;
use forebay_runtime::time::Instant;
use forebay_shard::Key as RecordKey;
use forebay_shard_store::{Store, shard_of};
use forebay_types::{Error, Key, Result};

use super::Asked;
use super::answer::{Questions, answer_all};
use super::dial::Dial;
use super::lanes::Lanes;
use super::log::{Follower, Queue};

/// A shard that is open.
pub(super) struct Served {
    pub(super) id: u128,
    pub(super) folder: Key,
    pub(super) number: u32,
    pub(super) lanes: Lanes,
    pub(super) store: ArcSwap<Store>,
    pub(super) bytes: AtomicU64,
    pub(super) input_bytes: u64,
    pub(super) dial: Dial,
    /// The log that it follows; none where nobody changes it.
    pub(super) log: Option<Follower>,
    /// Changes that wait.
    pub(super) queue: Queue,
    /// It is being merged, or about to be.
    pub(super) is_merging: AtomicBool,
    /// Of how many shards it is one.
    of: usize,
    answered: AtomicU64,
}

impl Served {
    pub(super) fn new(asked: &Asked, store: Store) -> Self {
        let shard = asked.shard();
        let (base_bytes, input_bytes) = (shard.bytes(), shard.input_bytes);
        let log = asked.log().map(|place| Follower::new(asked.manifest.id.mount, place, shard.log_from));
        Self {
            id: asked.id(),
            folder: asked.folder().clone(),
            number: asked.number,
            lanes: Lanes::default(),
            store: ArcSwap::from_pointee(store),
            bytes: AtomicU64::new(0),
            input_bytes,
            dial: Dial::new(base_bytes, input_bytes),
            log,
            queue: Queue::default(),
            is_merging: AtomicBool::new(false),
            of: asked.manifest.ids.len(),
            answered: AtomicU64::new(0),
        }
    }

    /// Answers in the shard's turn, on a thread that may block.
    pub(super) async fn answer(&self, questions: Questions, deadline: Instant) -> Result<Vec<u8>> {
        self.dial.arrived();
        let turn = self.lanes.enter(questions.are_gets, deadline).await?;
        let began = forebay_runtime::now();
        let store = self.store.load_full();
        let log_from = self.log.as_ref().map_or(1, |log| log.from);
        let work = move || {
            // Held by the work itself: a caller that goes away leaves no room for another one beside it.
            let _turn = turn;
            answer_all(&store, log_from, &questions, deadline)
        };
        let answers = forebay_runtime::spawn_blocking(work).await;
        let answers = answers.map_err(|error| Error::internal(format!("a question ended early: {error}")))??;
        self.dial.took(began.elapsed().as_secs_f64() * 1e6);
        self.answered.fetch_add(1, Relaxed);
        Ok(answers)
    }

    /// How it stands, as a dataset's shard of that number.
    pub(super) fn state(&self, number: u32) -> ShardState {
        let (why, is_changing, size_milli) = self.dial.told();
        ShardState {
            shard: number,
            bytes: self.bytes.load(Relaxed),
            size_milli,
            is_changing,
            answered: self.answered.load(Relaxed),
            queue: self.lanes.queue(),
            why,
        }
    }

    /// What is asked from now on is answered from another state of its files, with the same changes on top.
    pub(super) fn replace(&self, store: Store) {
        let replace = || {
            store.adopt_updates(&self.store.load());
            self.store.store(Arc::new(store));
        };
        match &self.log {
            Some(log) => log.hold(replace),
            None => replace(),
        }
    }

    /// Whether a key's record is in this shard, if anywhere.
    pub(super) fn holds(&self, key: &RecordKey) -> bool {
        shard_of(key, self.of) == self.number as usize
    }
}
