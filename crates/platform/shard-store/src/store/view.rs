use std::sync::Arc;

use forebay_shard::{FlatText, Key, Shard};

use crate::update::{LogStore, Update};

/// What one query sees: it stays whole while the query runs, whatever changes.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// Compressed shards, the oldest first.
    pub(crate) shards: Vec<Arc<Mapped>>,
    /// Flat text, in place of records.
    pub(crate) text: Option<Arc<FlatText>>,
    /// Updates that are not compressed yet, the oldest first; sizes fall, so there are few.
    pub(crate) runs: Vec<Arc<LogStore>>,
}

/// A compressed shard over mapped files.
pub(crate) struct Mapped {
    pub(crate) shard: Shard,
}

impl View {
    /// Adds a stretch of updates; young stretches of about the same size become one.
    pub(crate) fn push(&mut self, run: LogStore) {
        let mut run = run;
        while let Some(before) = self.runs.last() {
            if before.len() > 2 * run.len() {
                break;
            }
            run = before.join(&run);
            self.runs.pop();
        }
        self.runs.push(Arc::new(run));
    }

    /// What the updates say of a key, if anything. Two threads may have made theirs visible in the other order than that
    /// of the log, so the numbers decide.
    pub(crate) fn updated(&self, key: &Key) -> Option<Update<'_>> {
        self.runs.iter().filter_map(|run| run.get(key)).max_by_key(|update| update.number)
    }

    /// All updates, the last one of each key.
    pub(crate) fn updates(&self) -> LogStore {
        self.runs.iter().fold(LogStore::default(), |all, run| all.join(run))
    }

    /// How many updates there are, and about their bytes.
    pub(crate) fn pending(&self) -> (usize, usize) {
        self.runs.iter().fold((0, 0), |(count, bytes), run| (count + run.len(), bytes + run.bytes()))
    }
}
