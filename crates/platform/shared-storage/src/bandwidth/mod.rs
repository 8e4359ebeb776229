//! The bandwidth bound: how many bytes may be read, by whom, and when.

mod bucket;
mod limiter;
mod meter;
mod outstanding;
mod yielding;

pub(crate) use limiter::{Limiter, Turn};
pub(crate) use outstanding::Outstanding;
pub(crate) use yielding::{DemandGuard, Yielding};
