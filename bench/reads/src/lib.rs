//! Benchmarks of reads through the client's API, and the processes that they run against: an S3 server and a node each.
//!
//! No engine is needed for them, so that they build in minutes; `forebay-bench` runs the same ones under the same names. Start at
//! [`Reads`].

mod ahead;
mod bytes_of;
mod command;
pub mod heap;
mod limits;
mod objects;
mod reads;
pub mod rig;
mod serve;
mod sizes;
pub mod traffic;

pub use command::{Reads, Serve};
