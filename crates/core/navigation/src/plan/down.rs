//! What drops layers without anyone asking for them: too little room, and a load that is low for long.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::draft::{Draft, Entry};
use super::outcome::Reason;
use super::signal::Signal;
use crate::settings::Settings;

/// Until the room is enough: one layer after the other, each where the replica stays idlest.
pub(super) fn shed(draft: &mut Draft<'_>) {
    let mut idlest: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    if draft.is_crowded() {
        idlest.extend((0..draft.entries.len()).filter_map(|at| less(draft, at)));
    }
    while draft.is_crowded() {
        // The snapshot was refused if the lowest levels don't fit.
        let Reverse((_, at)) = idlest.pop().expect("somebody is above the lowest level while the room is too small");
        draft.lower(at, draft.entries[at].level - 1, Reason::Crowded);
        idlest.extend(less(draft, at));
    }
}

/// Until there is room for `taker` to have `level`: what others have above their lowest, as in [`shed`]. False, and nothing goes, where
/// that is too little.
pub(super) fn free(draft: &mut Draft<'_>, taker: usize, level: u32) -> bool {
    debug_assert!(draft.entries[taker].level < level, "{}: room is made to go up", draft.shard(taker));
    let others: Vec<usize> = (0..draft.entries.len()).filter(|at| *at != taker && draft.entries[*at].has_spare()).collect();
    let spare = |at: &usize| {
        let entry = &draft.entries[*at];
        entry.bytes_at(entry.level) - entry.bytes_at(entry.replica.lowest)
    };
    if others.iter().map(spare).sum::<u64>() < draft.missing(taker, level) {
        return false;
    }
    let mut idlest: BinaryHeap<Reverse<(u64, usize)>> = others.iter().filter_map(|at| less(draft, *at)).collect();
    while draft.missing(taker, level) > 0 {
        let Reverse((_, at)) = idlest.pop().expect("others have enough above their lowest level");
        let to = draft.shard(taker);
        draft.lower(at, draft.entries[at].level - 1, Reason::Yielded(to));
        idlest.extend(less(draft, at));
    }
    debug_assert_eq!(draft.missing(taker, level), 0, "{}: there is room", draft.shard(taker));
    true
}

/// How busy a replica would be with a layer less, as a key for the least; none if it can't have less.
fn less(draft: &Draft<'_>, at: usize) -> Option<Reverse<(u64, usize)>> {
    let entry = &draft.entries[at];
    let below = entry.has_spare().then(|| entry.level - 1)?;
    let load = entry.load_at(draft.settings, below);
    debug_assert!(load >= 0.0, "a load is not negative, so that its bits are ordered as it is");
    Some(Reverse((load.to_bits(), at)))
}

/// One layer of each whose load was low for long, down to the start.
pub(super) fn relax(draft: &mut Draft<'_>) {
    let patience = draft.settings.calm_periods();
    for at in 0..draft.entries.len() {
        let entry = &draft.entries[at];
        if !entry.is_free() || !can_spare(draft.settings, entry) {
            continue;
        }
        let (periods, level) = (entry.reading.memory.calm_periods, entry.level);
        if periods < patience {
            draft.entries[at].reason = Reason::Calm { periods, of: patience };
        } else if entry.reading.wait_now_us < draft.settings.lower_us() {
            draft.lower(at, level - 1, Reason::Shrank);
            // It stays calm for now: the next layer follows sooner.
            draft.entries[at].reading.memory.calm_periods = patience - patience.div_ceil(Settings::CALM_STEPS);
        }
    }
}

/// Whether a layer above the start is of no use to it.
fn can_spare(settings: &Settings, entry: &Entry<'_>) -> bool {
    entry.signals(Signal::Calm)
        && entry.level > entry.replica.start
        && entry.load_at(settings, entry.level - 1) <= settings.calm_load
}
