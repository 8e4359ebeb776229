//! Which worker a read of a segment goes to: the rank that all agree on (`rendezvous`), the table's parts in proportion to the plan
//! (`shares`), the choice among the replicas that the table names (`pick`) by what their `queues` are known to be, and when another one is
//! asked beside (`second`).

mod pick;
mod queues;
mod rendezvous;
mod second;
mod shares;

pub use pick::{Candidate, Pick, pick, two_choices};
pub use queues::QueueView;
pub use rendezvous::{holder, rank};
pub use second::{Allowance, Usual};
pub use shares::largest_remainder;
pub(crate) use shares::percentages;
