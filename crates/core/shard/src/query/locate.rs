//! From rows to records: a row is walked along psi until it lands where a layer knows the record.

use super::chains::keep;
use crate::base::Base;
use crate::bits::prefetch::with_bit_instructions;
use crate::layers::LayerSet;
use crate::layers::shape::rate_place;
use crate::model::alphabet::Meaning;
use crate::psi::Place;

/// Walks that go on side by side, so that their cache misses overlap.
const BATCH: usize = 24;

/// Where a walk has come to.
#[derive(Clone, Copy)]
struct Walk {
    row: u32,
    /// Which of the rows it began at, and in whose place the record goes.
    slot: u32,
    steps: u32,
    place: Place,
    /// The attribute of the first delimiter on the way: where the value ended.
    next: u32,
}

/// A record that a walk found, and the attribute that its row lies in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) record: u32,
    pub(crate) attribute: u32,
}

/// Appends the record of each of `rows`, which lie in the column of `attribute`.
pub(crate) fn records(base: &Base, set: &LayerSet, attribute: usize, rows: impl Iterator<Item = u32>, out: &mut Vec<u32>) {
    let start = base.delimiter_column(attribute).start;
    let direct = &set.sa[attribute];
    if !direct.any() {
        return walk_all(base, set, rows, false, |_, found| out.push(found.record));
    }
    let mut missing = Vec::new();
    for row in rows {
        if let Some(record) = direct.get((row - start) as usize) { out.push(record) } else { missing.push(row) }
    }
    if !missing.is_empty() {
        walk_all(base, set, missing.into_iter(), false, |_, found| out.push(found.record));
    }
}

/// Finds the record and the attribute of rows anywhere in the text.
pub(crate) fn anywhere(base: &Base, set: &LayerSet, rows: impl Iterator<Item = u32>, found: impl FnMut(u32, Found)) {
    walk_all(base, set, rows, true, found);
}

with_bit_instructions! {
    fn walk_all(
        base: &Base,
        set: &LayerSet,
        rows: impl Iterator<Item = u32>,
        attributes: bool,
        found: impl FnMut(u32, Found),
    ) {
        let (mut rows, mut found) = (rows, found);
        let mut trail = Trail::new(set.filling);
        let mut walks: Vec<Walk> = Vec::with_capacity(BATCH);
        let mut slot = 0;
        loop {
            while walks.len() < BATCH {
                let Some(row) = rows.next() else { break };
                base.psi.prefetch(row);
                walks.push(Walk { row, slot, steps: 0, place: Place::default(), next: u32::MAX });
                slot += 1;
            }
            if walks.is_empty() {
                return;
            }
            for walk in &mut walks {
                walk.place = base.psi.place(walk.row);
                base.psi.prefetch_payload(walk.place);
            }
            let mut at = 0;
            while at < walks.len() {
                let walk = &mut walks[at];
                // No walk is longer than the longest record; a bound for damage that checksums did not see.
                let lost = u64::from(walk.steps) > base.numbers.longest;
                match walk.land(base, set, attributes).or(lost.then(Found::default)) {
                    Some(landed) => {
                        trail.end(base, set, walk.slot, landed.record);
                        found(walk.slot, landed);
                        walks.swap_remove(at);
                    }
                    None => {
                        trail.pass(base, walk);
                        walk.row = base.psi.next(walk.place, walk.row);
                        base.psi.prefetch(walk.row);
                        walk.steps += 1;
                        at += 1;
                    }
                }
            }
        }
    }
}

impl Walk {
    /// The record, if a layer knows it here.
    #[inline(always)]
    fn land(&mut self, base: &Base, set: &LayerSet, attributes: bool) -> Option<Found> {
        let symbol = self.place.symbol;
        let last = base.schema.attributes.len() as u32 - 1;
        // Delimiters are the lowest symbols, so most steps are over with one comparison.
        if u32::from(symbol) > last + 1 {
            if set.any_rate && (!attributes || self.next != u32::MAX) {
                let (which, entry) = rate_place(u64::from(self.row));
                if let Some(record) = set.sa_rates[which as usize].get(entry as usize) {
                    return Some(Found { record, attribute: self.attribute(last) });
                }
            }
            return None;
        }
        if symbol == 0 {
            return Some(Found { record: base.records().saturating_sub(1), attribute: self.attribute_before(0, last) });
        }
        let attribute = u32::from(symbol) - 1;
        if self.steps > 0 && self.next == u32::MAX {
            self.next = attribute;
        }
        // Outside of the column only for damage that checksums did not see.
        let index = self.row.wrapping_sub(base.delimiter_column(attribute as usize).start);
        match set.sa[attribute as usize].get(index as usize) {
            // The start of the next record.
            Some(record) if attribute == 0 && self.steps > 0 => {
                Some(Found { record: record.saturating_sub(1), attribute: self.attribute(last) })
            }
            Some(record) => Some(Found { record, attribute: self.attribute(last) }),
            None => None,
        }
    }

    fn attribute(&self, last: u32) -> u32 {
        if self.next == u32::MAX { u32::MAX } else { self.attribute_before(self.next, last) }
    }

    fn attribute_before(&self, next: u32, last: u32) -> u32 {
        match (self.next, next) {
            (u32::MAX, 0) => last,
            (u32::MAX, next) => next - 1,
            (0, _) => last,
            (next, _) => next - 1,
        }
    }
}

/// The delimiters that walks passed, for the layers that are being filled.
struct Trail {
    passed: Option<Vec<(u32, u32, u32)>>,
}

impl Trail {
    fn new(filling: bool) -> Self {
        Self { passed: filling.then(Vec::new) }
    }

    #[inline(always)]
    fn pass(&mut self, base: &Base, walk: &Walk) {
        if let Some(passed) = &mut self.passed
            && let Meaning::Delimiter(attribute) = base.alphabet.meaning(walk.place.symbol)
        {
            passed.push((walk.slot, u32::from(attribute), walk.row));
        }
    }

    #[inline(always)]
    fn end(&mut self, base: &Base, set: &LayerSet, slot: u32, record: u32) {
        let Some(passed) = &mut self.passed else { return };
        passed.retain(|(other, attribute, row)| {
            if *other == slot {
                keep(base, set, record, *attribute as usize, *row);
            }
            *other != slot
        });
    }
}
