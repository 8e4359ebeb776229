//! When a worker may answer from what it knows: once all live workers have a view that names it, and so tell it what they write.

use std::collections::{BTreeMap, BTreeSet};

use forebay_types::WorkerId;

/// What a worker hears of what others change. It may answer from what it knows of objects only while everyone who writes
/// tells it, or waits until it has forgotten.
#[derive(Clone, Debug, Default)]
pub(in crate::decide) struct Hearing {
    /// Version of the view that it has.
    have: u64,
    /// Version of the view that was the first to name it as it is.
    named: u64,
    /// The number that its beats carry; none until all others have a view that names it.
    pub(in crate::decide) number: Option<u64>,
    /// A beat has carried it.
    pub(in crate::decide) is_told: bool,
    /// The number with which it forgot last.
    heard: Option<u64>,
}

impl Hearing {
    /// Of a worker that has just registered, and answers from nothing since before it did.
    pub(in crate::decide) fn new(named: u64) -> Self {
        Self { named, ..Self::default() }
    }

    pub(in crate::decide) fn named(&self) -> u64 {
        self.named
    }

    /// What the answer to a heartbeat carries.
    pub(in crate::decide) fn tell(&mut self) -> Option<u64> {
        self.is_told |= self.number.is_some();
        self.number
    }

    pub(in crate::decide) fn has_forgotten(&self, number: u64) -> bool {
        self.number.is_none() || self.heard.is_some_and(|heard| heard >= number)
    }
}

/// Which views live workers have, and who waits until all have one that names it.
#[derive(Debug, Default)]
pub(in crate::decide) struct Settling {
    /// How many have each view.
    views: BTreeMap<u64, usize>,
    /// By the view that names it.
    waiting: BTreeSet<(u64, WorkerId)>,
}

impl Settling {
    /// Of live workers as they are.
    pub(in crate::decide) fn of<'a>(live: impl Iterator<Item = (WorkerId, &'a Hearing)>) -> Self {
        let mut settling = Self::default();
        for (worker, hearing) in live {
            *settling.views.entry(hearing.have).or_default() += 1;
            if hearing.number.is_none() {
                settling.waiting.insert((hearing.named, worker));
            }
        }
        settling
    }

    /// A worker has registered: it has no view until it says so.
    pub(in crate::decide) fn joined(&mut self, worker: WorkerId, hearing: &Hearing) {
        *self.views.entry(hearing.have).or_default() += 1;
        self.waiting.insert((hearing.named, worker));
    }

    /// A heartbeat says how far a live worker is.
    pub(in crate::decide) fn beats(&mut self, hearing: &mut Hearing, have: u64, heard: Option<u64>) {
        hearing.heard = heard;
        if hearing.have != have {
            self.forget_view(hearing.have);
            *self.views.entry(have).or_default() += 1;
            hearing.have = have;
        }
    }

    /// A worker is not live any more.
    pub(in crate::decide) fn left(&mut self, worker: WorkerId, hearing: &Hearing) {
        self.forget_view(hearing.have);
        self.waiting.remove(&(hearing.named, worker));
    }

    /// How many workers have a view, which are all that live.
    pub(in crate::decide) fn workers(&self) -> usize {
        self.views.values().sum()
    }

    fn forget_view(&mut self, view: u64) {
        assert!(self.views.contains_key(&view), "view {view} is counted for who has it");
        if let Some(count) = self.views.get_mut(&view) {
            *count -= 1;
            if *count == 0 {
                self.views.remove(&view);
            }
        }
    }

    /// The oldest view that a live worker has said to have; 0 while one has not said.
    pub(in crate::decide) fn lowest(&self) -> u64 {
        self.views.first_key_value().map_or(0, |(view, _)| *view)
    }

    /// Those that everyone knows by now.
    pub(in crate::decide) fn settled(&mut self) -> Vec<WorkerId> {
        let lowest = self.lowest();
        let settled: Vec<_> = self.waiting.iter().take_while(|(named, _)| *named <= lowest).copied().collect();
        settled.iter().for_each(|entry| {
            self.waiting.remove(entry);
        });
        settled.into_iter().map(|(_, worker)| worker).collect()
    }
}

/// How many workers were lost so far, and which view told of the last one.
#[derive(Clone, Debug)]
pub(in crate::decide) struct Losses {
    number: u64,
    /// The view that told of the last one; none when it is known to all.
    untold: Option<u64>,
}

impl Losses {
    /// Of a new coordinator. What the one before told last may not be known to all, so this is another number in any case.
    pub(in crate::decide) fn new(epoch: u64) -> Self {
        Self { number: epoch << 32, untold: None }
    }

    /// One more, which this view tells of.
    pub(in crate::decide) fn add(&mut self, view: u64) {
        self.number += 1;
        assert!(self.untold.is_none_or(|before| before < view), "each loss is told by a view of its own");
        self.untold = Some(view);
    }

    pub(in crate::decide) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the last loss is known just now, by the oldest view that a live worker has: those who wait for that are to be woken.
    pub(in crate::decide) fn became_known(&mut self, lowest: u64) -> bool {
        self.untold.take_if(|view| *view <= lowest).is_some()
    }
}
