//! Datasets as a whole: made, replaced, and given other shards.

mod create;
mod files;
mod ranges;
mod reshard;

pub use create::{Creating, create};
pub use ranges::ReshardTo;
pub use reshard::{Cut, ReshardStep, Resharded, reshard};
