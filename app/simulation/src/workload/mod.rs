//! What is asked of the cluster, and when.

mod recorded;
mod skew;
mod synthetic;
mod trace;
mod zipf;

pub use recorded::Recorded;
pub(crate) use skew::{Skew, overlap};
pub use synthetic::Synthetic;
pub use trace::{Access, AccessKind, Conversion, Converted, Published, accesses, convert};
pub(crate) use zipf::Zipf;

/// Microseconds since the start of a run.
pub type Micros = u64;

/// A query: it reads each of its segments once, all at the same time, and is answered when the last of them is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// When the client has it.
    pub at: Micros,
    /// Which of the clients has it, as a number that is taken modulo theirs.
    pub client: usize,
    /// The segments, by the order in which they came into being.
    pub segments: Vec<u32>,
}
