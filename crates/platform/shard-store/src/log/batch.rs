//! What several threads have to write, gathered for one flush, and the outcome that all of them wait for.

use std::sync::{Arc, OnceLock};

use forebay_types::Result;

use super::frame;

/// Entries that become durable together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) body: Vec<u8>,
    pub(super) count: u32,
    /// The number of the first entry, once all are durable; or why none of them is.
    pub(super) outcome: Arc<OnceLock<Result<u64>>>,
}

impl Batch {
    /// Adds an entry, and says its place in the batch.
    pub(super) fn push(&mut self, entry: &[u8]) -> u32 {
        frame::push(&mut self.body, entry);
        self.count += 1;
        self.count - 1
    }
}
