//! Decides what is where: room, eviction, what is kept and pinned, what goes with a disk, what comes back after a restart.

mod admit;
mod evict;
mod forget;
mod free;
mod pin;
mod reclaim;
mod recover;
mod spare;

pub(crate) use admit::Reservation;
pub(crate) use pin::BlockPin;
pub(crate) use reclaim::Reclaim;
