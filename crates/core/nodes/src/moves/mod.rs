//! What goes from one worker to another: a node by a rename, a container by a handover, blocks under their nodes, the root.
//!
//! Each goes in steps that either side can take up again after it failed; the caller carries them between the workers.

mod blocks;
mod handover;
mod renamed;
mod root;
mod takeover;

pub use handover::{Carton, Packed};
