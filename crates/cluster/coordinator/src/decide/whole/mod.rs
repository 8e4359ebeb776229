//! What leaves the state whole where a decision fails in the middle, and what has one fail there in tests.

mod kept;

#[cfg(test)]
use std::cell::RefCell;
use std::fmt;

pub(super) use kept::{Kept, Soft};

#[cfg(test)]
thread_local! {
    static FAILS_AT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Fails where a test has said so, and nowhere else.
#[cfg(test)]
pub(in crate::decide) fn failpoint(place: fmt::Arguments<'_>) {
    let fails = FAILS_AT.with_borrow(|at| at.as_ref().is_some_and(|at| *at == place.to_string()));
    if fails {
        // Past the hook, which would write a page about each of thousands.
        std::panic::resume_unwind(Box::new("as a test wants it"));
    }
}

#[cfg(not(test))]
pub(in crate::decide) fn failpoint(_: fmt::Arguments<'_>) {}

/// Decisions of this thread fail at a place from now on; at none without.
#[cfg(test)]
pub(crate) fn fail_at(place: Option<&str>) {
    FAILS_AT.set(place.map(Into::into));
}
