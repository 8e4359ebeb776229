//! Operations a second of CPU time, which another process's load leaves alone, or of the clock on the wall.

use std::time::Instant;

use forebay_bench_harness::cpu::ThreadTime;

/// Runs operations `0, 1, 2, ..` of a list of `count` again and again for `cpu_secs`, and says how many it did a CPU-second.
pub(crate) fn a_cpu_second(cpu_secs: f64, count: usize, mut operation: impl FnMut(usize)) -> f64 {
    // Warm up on a part, so that the first rate isn't that of cold memory.
    let warm = ThreadTime::now();
    let mut next = 0;
    while next < count && warm.elapsed().as_secs_f64() < cpu_secs / 4.0 {
        for _ in 0..16.min(count - next) {
            operation(next);
            next += 1;
        }
    }
    let clock = ThreadTime::now();
    let (mut done, mut batch) = (0usize, 16);
    loop {
        for _ in 0..batch {
            operation(next % count);
            next += 1;
        }
        done += batch;
        let secs = clock.elapsed().as_secs_f64();
        if secs >= cpu_secs {
            return done as f64 / secs;
        }
        // The clock is read about every 5 ms.
        if secs > 0.02 {
            batch = ((done as f64 / secs * 0.005) as usize).clamp(1, 1 << 20);
        }
    }
}

/// Runs operations `0, 1, 2, ..` for so many seconds of the clock on the wall, and says how many it did a second.
pub(crate) fn a_second(secs: f64, mut operation: impl FnMut(usize)) -> f64 {
    const BATCH: usize = 64;
    let (began, mut done) = (Instant::now(), 0);
    loop {
        (done..done + BATCH).for_each(&mut operation);
        done += BATCH;
        let taken = began.elapsed().as_secs_f64();
        if taken >= secs {
            return done as f64 / taken;
        }
    }
}
