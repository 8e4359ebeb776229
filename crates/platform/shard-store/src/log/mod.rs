//! The log of updates: what was acknowledged survives the process.

mod batch;
mod frame;
mod local;
mod replay;

pub use local::LocalLog;
