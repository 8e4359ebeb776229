//! What is made of a dataset as a whole while it is asked: refreshes, and more or fewer shards.
//!
//! Owns: the work that is under way in this process, and what is known of how it ended. It goes on when who asked for it has gone.
//!
//! Never does: read an object's format, which comes by the [`Workshop`].

mod refresh;
mod reshard;
mod work;

pub use work::Workshop;

pub(super) use refresh::{EVERY, REFRESH, REFRESHED, every, refresh, refreshed};
pub(super) use reshard::{RESHARD, RESHARDED, reshard, resharded};
pub(super) use work::Works;
