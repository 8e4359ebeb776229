//! Records that are changed while they are served, and datasets that are made anew.

mod acks;
pub mod changes;
mod linearizable;
pub mod refresh;
mod repeats;
pub mod reshard;
mod told;
