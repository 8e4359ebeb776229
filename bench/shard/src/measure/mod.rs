//! CPU time, memory latency, peak memory, and figures with their bars.

mod cpu;
mod figure;
mod machine;

pub(crate) use cpu::{a_cpu_second, a_second};
pub(crate) use figure::{Bar, Figure};
pub(crate) use machine::{PeakMemory, random_read_ns, resident_bytes};
