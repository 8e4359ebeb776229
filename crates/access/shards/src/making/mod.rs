//! Datasets as a whole: made, replaced, and given more or fewer shards.

mod create;
mod files;
mod forgo;
mod reshard;
mod seal;

pub use create::{Creating, create};
pub use reshard::{Cut, ReshardStep, ReshardTo, Resharded};
