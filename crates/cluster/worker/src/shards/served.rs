//! A shard that answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arc_swap::ArcSwap;
use forebay_protocol::ShardState;
use forebay_runtime::time::Instant;
use forebay_shard_store::{DatasetShard, Store};
use forebay_types::{Error, Key, Result};

use super::answer::{Questions, answer_all};
use super::dial::Dial;
use super::lanes::Lanes;

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
    answered: AtomicU64,
}

impl Served {
    pub(super) fn new(id: u128, folder: Key, number: u32, shard: &DatasetShard, store: Store) -> Self {
        let (base_bytes, input_bytes) = (shard.bytes(), shard.input_bytes);
        Self {
            id,
            folder,
            number,
            lanes: Lanes::default(),
            store: ArcSwap::from_pointee(store),
            bytes: AtomicU64::new(0),
            input_bytes,
            dial: Dial::new(base_bytes, input_bytes),
            answered: AtomicU64::new(0),
        }
    }

    /// Answers in the shard's turn, on a thread that may block.
    pub(super) async fn answer(&self, questions: Questions, deadline: Instant) -> Result<Vec<u8>> {
        self.dial.arrived();
        let turn = self.lanes.enter(questions.are_gets, deadline).await?;
        let began = forebay_runtime::now();
        let store = self.store.load_full();
        let work = move || {
            // Held by the work itself: a caller that goes away leaves no room for another one beside it.
            let _turn = turn;
            answer_all(&store, &questions, deadline)
        };
        let answers = tokio::task::spawn_blocking(work).await;
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

    /// What is asked from now on is answered from another state of its files.
    pub(super) fn replace(&self, store: Store) {
        self.store.store(Arc::new(store));
    }
}
