//! CPU time, memory latency and peak memory.

mod cpu;
mod machine;

pub(crate) use cpu::{a_cpu_second, a_second};
pub(crate) use machine::{PeakMemory, random_read_ns, resident_bytes};
