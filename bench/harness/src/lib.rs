//! What all benchmarks share: how a figure is printed, CPU time and memory of processes, and the secret by which the processes of
//! one benchmark know each other.

pub mod cpu;
mod figure;
mod rounds;

pub use figure::{Bar, Figure, at_least, at_most, median};
use forebay_transport::Security;
pub use rounds::Rounds;

/// Of every process of a benchmark, so that they let each other in.
pub fn security() -> Security {
    Security::owner("the secret of the benchmark").expect("it is long enough")
}
