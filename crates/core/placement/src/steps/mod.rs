//! The steps from what is held to what is planned: what to load and what to delete (`changes`), and what else has to go where bytes
//! are short (`garbage`). Each asserts what must hold of it.

mod changes;
mod garbage;
#[cfg(test)]
mod postconditions;

pub use changes::{Changes, InFlight, Load, changes};
pub use garbage::{Garbage, Replica, Storage, collect, garbage};
