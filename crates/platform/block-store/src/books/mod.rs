//! What of a tier is taken and by whom, which addresses are free, and who goes next: counted, without a look at any byte.

mod account;
mod allocate;
mod eviction;
mod ghost;
mod s3_fifo;
mod spares;
mod spread;
mod tier;

pub(crate) use account::{Account, OWNERS};
pub(crate) use allocate::Addresses;
pub(crate) use eviction::Verdict;
pub(crate) use spares::Spares;
pub(crate) use spread::{DiskRoom, choose};
pub(crate) use tier::Tier;
