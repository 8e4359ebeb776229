//! Searches that end when nobody waits for them any more.

use std::cell::{Cell, RefCell};

use forebay_types::{Error, Result};

/// Asked every now and then by a search, which ends with the error.
pub type GoOn<'g> = dyn Fn() -> Result<()> + 'g;

/// Records or rows that are looked at between two questions: some hundred microseconds.
const STEPS: u32 = 512;

/// A search that somebody waits for.
pub(crate) struct Waited<'g> {
    go_on: &'g GoOn<'g>,
    steps: Cell<u32>,
    /// Why it has ended.
    ended: RefCell<Option<Error>>,
}

impl<'g> Waited<'g> {
    pub(crate) fn new(go_on: &'g GoOn<'g>) -> Self {
        Self { go_on, steps: Cell::new(0), ended: RefCell::new(None) }
    }

    /// Whether the next record or row is looked at.
    #[inline]
    pub(crate) fn step(&self) -> bool {
        debug_assert!(self.steps.get() < STEPS, "the last step before a question asks");
        let steps = self.steps.get() + 1;
        if steps < STEPS {
            self.steps.set(steps);
            return true;
        }
        self.ask()
    }

    #[cold]
    fn ask(&self) -> bool {
        let mut ended = self.ended.borrow_mut();
        if ended.is_none() {
            *ended = (self.go_on)().err();
        }
        // One that has ended is asked at each step from then on.
        self.steps.set(if ended.is_some() { STEPS - 1 } else { 0 });
        ended.is_none()
    }

    /// The error that it has ended with: what was found until then is not all.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.ended.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_stays_so() {
        let asked = Cell::new(0);
        let second = || {
            asked.set(asked.get() + 1);
            if asked.get() < 2 { Ok(()) } else { Err(Error::closed("nobody waits")) }
        };
        let waited = Waited::new(&second);
        let steps = (0..10 * STEPS).take_while(|_| waited.step()).count();
        assert_eq!((steps as u32, asked.get()), (2 * STEPS - 1, 2));
        assert!((0..3).all(|_| !waited.step()) && asked.get() == 2, "nobody is asked once more");
        assert!(waited.check().is_err() && Waited::new(&|| Ok(())).check().is_ok());
    }
}
