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
    pub(crate) fn step(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps % STEPS);
        if steps == STEPS
            && let Err(error) = (self.go_on)()
        {
            *self.ended.borrow_mut() = Some(error);
        }
        self.ended.borrow().is_none()
    }

    /// The error that it has ended with: what was found until then is not all.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.ended.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}
