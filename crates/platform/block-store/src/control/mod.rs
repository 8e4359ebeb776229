//! Decides what is where: addresses, room, eviction, what is kept and pinned, what comes back after a restart.

mod account;
mod admit;
mod allocate;
mod evict;
mod eviction;
mod folder;
mod free;
mod ghost;
mod health;
mod index;
mod pin;
mod reclaim;
mod record;
mod recover;
mod s3_fifo;
mod scrub;
mod spare;
mod tier;

pub(crate) use account::{Account, OWNERS};
pub(crate) use admit::Reservation;
pub(crate) use allocate::Addresses;
pub(crate) use folder::Folder;
pub(crate) use health::{Direction, Health};
pub(crate) use index::Index;
pub(crate) use pin::BlockPin;
pub(crate) use reclaim::Reclaim;
pub(crate) use record::Record;
pub(crate) use scrub::scrub;
pub(crate) use spare::Spares;
pub(crate) use tier::Tier;

pub use scrub::{ScrubCursor, ScrubStep};
