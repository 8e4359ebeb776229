//! Workers that are lost, and whether all others know: only then is what they had given to anybody else.

use super::State;

/// How many workers were lost so far, and which view told of the last one.
#[derive(Debug)]
pub(super) struct Losses {
    number: u64,
    /// The view that told of the last one; none when it is known to all.
    untold: Option<u64>,
}

impl Losses {
    /// Of a new coordinator. What the one before told last may not be known to all, so this is another number in any case.
    pub(super) fn new(epoch: u64) -> Self {
        Self { number: epoch << 32, untold: None }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the last loss is known just now, by the oldest view that a live worker has: those who wait for that are to be woken.
    pub(super) fn became_known(&mut self, lowest: u64) -> bool {
        self.untold.take_if(|view| *view <= lowest).is_some()
    }
}

impl State {
    /// A worker is lost, or is a new one: the view says so.
    pub(super) fn lost(&mut self) {
        self.view_changed();
        self.losses.number += 1;
        self.losses.untold = Some(self.view_version);
    }
}
