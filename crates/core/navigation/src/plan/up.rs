//! What adds layers: requests that wait too long, and less than at the start.

use super::down::free;
use super::draft::Draft;
use super::exchange::Exchange;
use super::outcome::Reason;
use super::signal::Signal;

/// Replicas below their lowest level, for instance since they were pinned there, are brought to it in one pass. Where there is no room,
/// others drop what they have above their lowest level.
pub(super) fn hold(draft: &mut Draft<'_>) {
    for at in 0..draft.entries.len() {
        let (entry, lowest) = (&draft.entries[at], draft.entries[at].replica.lowest);
        if !entry.is_free() || entry.level >= lowest || entry.replica.is_building() {
            continue;
        }
        if !draft.may_build() {
            draft.entries[at].reason = Reason::TooManyBuilding;
        } else if free(draft, at, lowest) {
            draft.raise(at, lowest, Reason::Pinned);
        } else {
            draft.entries[at].reason = Reason::PinWaits;
        }
    }
}

/// One layer more for each whose requests wait too long, the longest wait first.
pub(super) fn relieve(draft: &mut Draft<'_>) {
    let mut waiting: Vec<usize> = (0..draft.entries.len()).filter(|at| needs_more(draft, *at)).collect();
    waiting.sort_by(|a, b| draft.entries[*b].reading.wait_us.total_cmp(&draft.entries[*a].reading.wait_us));
    let mut exchange = Exchange::of(draft);
    for at in waiting {
        let replica = draft.entries[at].replica;
        let above = replica.curve.up(replica.level).filter(|level| *level <= replica.highest);
        // What belongs to it anyway comes in one pass (`restore`), not layer by layer.
        if draft.entries[at].level < replica.start && draft.missing(at, replica.start) == 0 {
            continue;
        }
        match above {
            None => draft.entries[at].reason = Reason::AtHighest,
            Some(_) if !draft.may_build() => draft.entries[at].reason = Reason::TooManyBuilding,
            Some(level) => grow(draft, &mut exchange, at, level),
        }
    }
}

fn needs_more(draft: &Draft<'_>, at: usize) -> bool {
    let entry = &draft.entries[at];
    entry.signals(Signal::High) && entry.is_free()
}

fn grow(draft: &mut Draft<'_>, exchange: &mut Exchange, at: usize, level: u32) {
    match exchange.make_room(draft, at, level) {
        None => draft.entries[at].reason = Reason::NoRoom,
        Some(givers) if givers.is_empty() => draft.raise(at, level, Reason::Grew),
        Some(givers) => draft.raise(at, level, Reason::Took(givers)),
    }
}

/// Who has less than at the start gets it back while there is room, all of it in one pass: a repaired shard begins so, and one
/// that gave layers away ends so.
pub(super) fn restore(draft: &mut Draft<'_>) {
    for at in 0..draft.entries.len() {
        let entry = &draft.entries[at];
        let start = entry.replica.start;
        let settled = !entry.replica.is_building() && entry.is_free() && !entry.signals(Signal::New);
        if settled && entry.level < start && draft.may_build() && draft.missing(at, start) == 0 {
            draft.raise(at, start, Reason::Returned);
        }
    }
}
