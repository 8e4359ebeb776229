//! CPU time, memory latency and peak memory.

mod cpu;

use std::time::Instant;

use forebay_bench_harness::cpu::{ThreadTime, own_bytes};

pub(crate) use cpu::{a_cpu_second, a_second};

/// Nanoseconds of one dependent read at a random place of 256 MiB: what every step through a shard pays.
pub(crate) fn random_read_ns() -> f64 {
    const ITEMS: usize = 64 << 20;
    // One cycle through all items (a linear congruential generator of full period), so that each read says where the next
    // one is.
    let next: Vec<u32> =
        (0..ITEMS as u32).map(|at| at.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F) % ITEMS as u32).collect();
    const READS: u32 = 2_000_000;
    let mut at = 0;
    let clock = ThreadTime::now();
    for _ in 0..READS {
        at = next[at as usize];
    }
    std::hint::black_box(at);
    clock.elapsed().as_nanos() as f64 / f64::from(READS)
}

pub(crate) fn resident_bytes() -> u64 {
    own_bytes("VmRSS:")
}

/// The most memory that the process takes from here on.
pub(crate) struct PeakMemory {
    before: u64,
    started: Instant,
}

impl PeakMemory {
    /// Forgets the peak so far.
    pub(crate) fn start() -> Self {
        std::fs::write("/proc/self/clear_refs", "5").expect("the kernel lets a process forget its own peak");
        Self { before: resident_bytes(), started: Instant::now() }
    }

    /// Bytes above what there was at the start.
    pub(crate) fn bytes(&self) -> u64 {
        own_bytes("VmHWM:").saturating_sub(self.before)
    }

    /// Seconds since the start.
    pub(crate) fn secs(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
