//! The log of updates: what was acknowledged survives the process.

mod batch;
mod frame;
mod local;
mod replay;

pub use local::LocalLog;

use forebay_types::Result;

/// A durable sequence of entries, numbered from 1 without gaps.
///
/// A local file serves the command line ([`LocalLog`]); a service keeps it in the dataset's folder on shared storage.
pub trait Log: Send + Sync {
    /// Makes an entry durable and says its number; entries of several threads are made durable together.
    fn append(&self, entry: &[u8]) -> Result<u64>;

    /// Hands over the entries from number `from` on, in order.
    fn replay(&self, from: u64, each: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()>;

    /// Starts a new part, so that the entries so far can be forgotten as a whole. Says the number of the next entry.
    fn roll(&self) -> Result<u64>;

    /// Gives back the room of parts that only hold entries below `before`.
    fn forget(&self, before: u64) -> Result<()>;
}
