//! Counts the steps of answers in tests: unlike time they are the same on every machine.

/// Stands where an answer costs something: a step along psi, an entry of a layer.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(test)]
    tests::STEPS.with(|steps| steps.set(steps.get() + 1));
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    thread_local! {
        pub(super) static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// The steps that a call takes on this thread.
    pub(crate) fn steps_of(call: impl FnOnce()) -> u64 {
        let before = STEPS.with(Cell::get);
        call();
        STEPS.with(Cell::get) - before
    }
}
