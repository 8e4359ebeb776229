//! The orders in which jobs are served.

use std::collections::BTreeSet;

use super::entries::Job;
use super::model::{JobId, Policy};
use super::turn::{Each, Places, Turn};

/// The turn of a job of which Fair counts so many.
pub(super) fn turn(id: JobId, job: &Job, fair: usize, policy: Policy) -> Turn {
    let fair = if policy == Policy::Fair { fair } else { 0 };
    (-i64::from(job.priority), fair, job.arrival, id)
}

/// Jobs with tasks that wait, in the orders in which they are served, so that a decision looks at the first ones only.
pub(super) type Orders = Each<BTreeSet<Turn>>;

impl Orders {
    /// Puts a job where it belongs by now.
    pub(super) fn file(&mut self, id: JobId, job: &mut Job, policy: Policy) {
        let turn = |fair: usize| turn(id, job, fair, policy);
        let waits = job.pending.count > 0;
        let (slot, missing) = (turn(job.running), !job.pending.missing.is_empty());
        let places = Places {
            waiting: waits.then_some(slot),
            coming: (!job.coming.is_empty()).then_some(slot),
            anywhere: (!job.pending.anywhere.is_empty()).then_some(slot),
            cold: missing.then_some(slot),
            near: (!job.pending.near.is_empty()).then_some(slot),
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
