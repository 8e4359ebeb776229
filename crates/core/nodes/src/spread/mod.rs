//! Which worker gets what: decisions that look at workers and sizes alone, and not at a part of the namespace.

mod drain;
mod offer;

pub use drain::{Haven, Moves, plan_blocks, plan_containers};
pub use offer::{Candidate, Full, offer};
