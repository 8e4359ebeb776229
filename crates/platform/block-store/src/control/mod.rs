//! Decides what is where: addresses, room, eviction, what is kept and pinned, what comes back after a restart.

mod account;
mod admit;
mod allocate;
mod evict;
mod eviction;
mod free;
mod ghost;
mod pin;
mod reclaim;
mod s3_fifo;
mod tier;

pub(crate) use account::{Account, OWNERS};
pub(crate) use admit::Reservation;
pub(crate) use allocate::Addresses;
pub(crate) use reclaim::Reclaim;
pub(crate) use tier::Tier;
