//! Running benches: their programs, one run, and a round of all.

mod build;
mod gather;
mod run;

pub use build::Programs;
pub use gather::gather;
