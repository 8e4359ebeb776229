use std::sync::Arc;

use forebay_types::{Error, Result, ResultExt};

use super::Store;
use crate::log::Log;
use crate::update::{Change, LogStore};

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
        if self.view.load().pending().1 > writer.limits.pending_bytes {
            let room = || self.view.load().pending().1 <= writer.limits.pending_bytes;
            let context = || format!("{}: changes wait for a merge, which fails", self.path.display());
            writer.merging.wait_until(room).context(context)?;
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
        if self.wants_gather() {
            writer.gathered.wake();
        }
        if self.wants_merge() {
            writer.merging.wake();
        }
        Ok(())
    }

    /// Whether there are so many updates that a suffix array is worth the work.
    pub(super) fn wants_gather(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| self.view.load().logged().1 > writer.limits.gather_bytes)
    }

    /// Whether so much was updated that compressing it is worth the work.
    pub(super) fn wants_merge(&self) -> bool {
        let view = self.view.load();
        let input = view.shards.iter().map(|mapped| mapped.shard.info().input_bytes).sum();
        self.writer.as_ref().is_some_and(|writer| view.pending().1 > writer.limits.merge_from(input))
    }
}
