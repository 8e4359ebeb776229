use std::sync::Arc;

use forebay_types::{Error, Result};

use super::Store;
use crate::log::Log;
use crate::update::{Change, LogStore};

/// Updates in memory above which a change waits for the merge.
const PENDING_BYTES_MAX: usize = 64 << 20;
/// A merge rewrites the shard, so it waits until there is this much of it to do.
const MERGE_SHARE: f64 = 0.125;
/// And for at least this much.
const MERGE_BYTES_MIN: usize = 4 << 20;

impl Store {
    /// Makes changes durable and visible, all of them together. When it returns they survive this process; of two changes
    /// of one key the later one counts.
    pub fn change(&self, changes: Vec<Change>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let writer = self.writer()?;
        let schema = self.records()?.schema();
        let mut entry = Vec::new();
        for change in &changes {
            if change.key().key_type() != schema.key_type {
                return Err(Error::invalid(format!("{} is no key of this shard: it is of another type", change.key())));
            }
            if let Change::Put(_, values) = change
                && values.len() != schema.attributes.len()
            {
                let message = format!("a record has {} values beside its key, not {}", schema.attributes.len(), values.len());
                return Err(Error::invalid(message));
            }
            change.encode(&mut entry);
        }
        if self.view.load().pending().1 > PENDING_BYTES_MAX {
            self.merge()?;
        }
        let number = {
            // From the log to the view in one piece, so that a merge between the two can't miss it.
            let _publishing = writer.publishing.read();
            let number = writer.log.append(&entry)?;
            let mut run = LogStore::default();
            changes.into_iter().for_each(|change| run.apply(number, change));
            self.view.rcu(|view| {
                let mut next = (**view).clone();
                next.push(run.clone());
                Arc::new(next)
            });
            number
        };
        tracing::trace!(number, "updates are durable");
        Ok(())
    }

    /// Whether so much was updated that compressing it is worth the work.
    pub fn wants_merge(&self) -> bool {
        let view = self.view.load();
        let input: u64 = view.shards.iter().map(|mapped| mapped.shard.info().input_bytes).sum();
        view.pending().1 as f64 > (input as f64 * MERGE_SHARE).clamp(MERGE_BYTES_MIN as f64, PENDING_BYTES_MAX as f64)
    }
}
