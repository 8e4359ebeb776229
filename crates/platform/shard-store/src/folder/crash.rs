//! The places where a process may end in the midst of a change, for tests that try them all.

/// Stands between two steps of a change on disk. Tests end the process here, at any one of them.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    tests::step();
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    /// How many steps are left until the process ends; below zero it never does.
    pub(crate) static STEPS_LEFT: AtomicI64 = AtomicI64::new(-1);

    pub(super) fn step() {
        if STEPS_LEFT.load(Ordering::Relaxed) >= 0 && STEPS_LEFT.fetch_sub(1, Ordering::Relaxed) == 0 {
            std::process::abort();
        }
    }
}
