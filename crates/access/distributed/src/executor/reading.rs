//! Hands the places that the schedule chose for a task to the client, and bounds how many are remembered.

use std::collections::VecDeque;

use forebay_client::{Client, ReadAt};
use forebay_jobs::Places;
use forebay_types::OperationId;
use parking_lot::Mutex;

/// Tasks whose places are remembered. A task that runs so long that this many others began reads as everyone else then.
const TASKS_MAX: usize = 1_024;

/// Where the tasks of an executor read.
pub(super) struct Reading {
    client: Client,
    kept: Mutex<VecDeque<ReadAt>>,
}

impl Reading {
    pub(super) fn new(client: Client) -> Self {
        Self { client, kept: Mutex::default() }
    }

    /// A task is about to run. Its runtime says nothing of its end, so that the oldest places go when there are many.
    pub(super) fn note(&self, operation: OperationId, places: Places) {
        if places.is_empty() {
            return;
        }
        let kept = self.client.read_at(operation, places);
        let mut all = self.kept.lock();
        all.push_back(kept);
        while all.len() > TASKS_MAX {
            all.pop_front();
        }
        assert!(all.len() <= TASKS_MAX, "places of {} tasks are remembered", all.len());
    }
}
