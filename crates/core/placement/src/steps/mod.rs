//! The steps from what is held to what is planned: what to load and what to delete (`changes`), and what else has to go where bytes
//! are short (`garbage`). What must hold of both is in `postconditions`.

mod changes;
mod garbage;
mod postconditions;

pub use changes::{Changes, InFlight, Load, changes};
pub use garbage::{Garbage, Replica, Storage, collect, garbage};
