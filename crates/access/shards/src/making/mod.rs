//! Datasets as a whole: made, replaced, and given more or fewer shards.

mod create;
mod files;
mod reshard;

pub use create::{Creating, create};
pub use reshard::{Cut, ReshardStep, ReshardTo, Resharded, reshard};
