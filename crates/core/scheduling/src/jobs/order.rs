//! The orders in which jobs are served.

use std::collections::BTreeSet;

use super::entries::Job;
use super::model::{JobId, Policy};
use super::turn::{Places, Turn};

/// The turn of a job of which Fair counts so many.
pub(super) fn turn(id: JobId, job: &Job, fair: usize, policy: Policy) -> Turn {
    let fair = if policy == Policy::Fair { fair } else { 0 };
    (-i64::from(job.priority), fair, job.arrival, id)
}

/// Jobs with tasks that wait, in the orders in which they are served, so that a decision looks at the first ones only.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    /// As slots are offered: all of them.
    pub waiting: BTreeSet<Turn>,
    /// Those with tasks that are still to be taken in.
    pub coming: BTreeSet<Turn>,
    /// Those with a task that waits and has no input.
    pub anywhere: BTreeSet<Turn>,
    /// Those that need what nobody has.
    pub cold: BTreeSet<Turn>,
    /// Those with input at, or on its way to, some worker.
    pub near: BTreeSet<Turn>,
    /// In the order in which input is brought, which is the order in which slots are expected to be given: jobs that need what no
    /// worker has, and jobs for which something was brought ahead.
    pub transfers: BTreeSet<Turn>,
}

impl Orders {
    /// Puts a job where it belongs by now.
    pub(super) fn file(&mut self, id: JobId, job: &mut Job, policy: Policy) {
        let turn = |fair: usize| turn(id, job, fair, policy);
        let waits = job.pending > 0;
        let (slot, missing) = (turn(job.running), !job.missing.is_empty());
        let places = Places {
            waiting: waits.then_some(slot),
            coming: (!job.coming.is_empty()).then_some(slot),
            anywhere: (!job.anywhere.is_empty()).then_some(slot),
            cold: missing.then_some(slot),
            near: (!job.near.is_empty()).then_some(slot),
            transfers: (waits && (missing || job.ahead_bytes > 0)).then(|| turn(job.ready)),
        };
        let places = if job.is_closed { Places::default() } else { places };
        let before = std::mem::replace(&mut job.places, places);
        if before != places {
            self.renew(before, places);
        }
    }

    fn renew(&mut self, before: Places, after: Places) {
        for (order, old, new) in [
            (&mut self.waiting, before.waiting, after.waiting),
            (&mut self.coming, before.coming, after.coming),
            (&mut self.anywhere, before.anywhere, after.anywhere),
            (&mut self.cold, before.cold, after.cold),
            (&mut self.near, before.near, after.near),
            (&mut self.transfers, before.transfers, after.transfers),
        ] {
            if old != new {
                old.map(|turn| order.remove(&turn));
                new.map(|turn| order.insert(turn));
            }
        }
    }
}
