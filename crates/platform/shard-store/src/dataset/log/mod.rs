//! What was changed in a shard since its files were made, as objects in shared storage.

mod claim;
mod object;
mod place;

pub use claim::LogClaim;
pub use object::{LogObject, LoggedCall};
pub use place::LogPlace;
