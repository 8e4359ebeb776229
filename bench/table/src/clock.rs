//! Seconds that the processor spends in this thread, so that what else the machine does counts less.

#![allow(unsafe_code, reason = "the clock is a system call")]

fn thread_secs() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that the call may write to.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(answer, 0, "the system has no clock for threads");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Something that is measured, by name.
pub struct Candidate<'a> {
    pub name: &'static str,
    run: Box<dyn FnMut() -> f64 + 'a>,
    pub secs: f64,
    /// What it made of the values, to see that all did the same.
    pub sum: f64,
}

impl<'a> Candidate<'a> {
    pub fn new(name: &'static str, run: impl FnMut() -> f64 + 'a) -> Self {
        Self { name, run: Box::new(run), secs: f64::INFINITY, sum: 0.0 }
    }
}

/// Runs the candidates in turns; the first round warms up.
pub fn race(rounds: usize, candidates: &mut [Candidate<'_>]) {
    for round in 0..=rounds {
        for candidate in candidates.iter_mut() {
            let start = thread_secs();
            candidate.sum = (candidate.run)();
            let secs = thread_secs() - start;
            if round > 0 {
                candidate.secs = candidate.secs.min(secs);
            }
        }
    }
}
