//! CPU time and peak memory of the planner, read from /proc.

use std::fs;
use std::time::Instant;

/// CPU time of this thread, so that a busy machine doesn't count.
pub struct Clock {
    cpu_ns: Option<u64>,
    wall: Instant,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self { cpu_ns: cpu_ns(), wall: Instant::now() }
    }

    /// Milliseconds since then; of the wall clock where the system doesn't tell.
    pub fn cpu_ms(&self) -> f64 {
        match (self.cpu_ns, cpu_ns()) {
            (Some(start), Some(end)) => (end - start) as f64 / 1e6,
            _ => self.wall.elapsed().as_secs_f64() * 1e3,
        }
    }
}

fn cpu_ns() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

/// Memory of this process at its peak; 0 where the system doesn't tell.
pub(crate) fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}
