//! Traces: accesses as a cluster or somebody else recorded them, a line of JSON each.
//!
//! Lines are read one at a time, so that a trace may be of any length.

mod access;
mod convert;
mod lines;
mod published;

pub use access::{Access, AccessKind, accesses};
pub use convert::{Conversion, Converted, convert};
pub use published::Published;
