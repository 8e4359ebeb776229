//! An array with holes: a slice is absent, being filled or sealed, and readers need not know which until they look.

use std::sync::Arc;

use super::filling::Filling;
use crate::bits::Packed;
use crate::steps::step;

/// One slice of an array of integers.
#[derive(Clone, Debug, Default)]
pub(crate) enum Slot {
    #[default]
    Absent,
    Sealed(Packed),
    Filling(Arc<Filling>),
}

/// An array of integers of which any slices may be there.
#[derive(Clone, Debug)]
pub(crate) struct Sliced {
    shift: u32,
    slots: Vec<Slot>,
    present: usize,
    filling: usize,
}

impl Sliced {
    /// Slices of `1 << shift` entries, none there yet.
    pub(crate) fn new(shift: u32, slices: usize) -> Self {
        Self { shift, slots: vec![Slot::Absent; slices], present: 0, filling: 0 }
    }

    /// An array that is all there.
    pub(crate) fn whole(values: Packed) -> Self {
        Self { shift: 32, slots: vec![Slot::Sealed(values)], present: 1, filling: 0 }
    }

    pub(crate) fn set(&mut self, slice: usize, slot: Slot) {
        assert!(slice < self.slots.len(), "slice {slice} of {} has a place", self.slots.len());
        if let Some(place) = self.slots.get_mut(slice) {
            *place = slot;
        }
        self.present = self.slots.iter().filter(|slot| !matches!(slot, Slot::Absent)).count();
        self.filling = self.slots.iter().filter(|slot| matches!(slot, Slot::Filling(_))).count();
    }

    /// How many slices are there.
    pub(crate) fn present(&self) -> usize {
        self.present
    }

    /// Whether any slice is there.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.present > 0
    }

    /// Whether any slice is still being filled.
    #[inline(always)]
    pub(crate) fn any_filling(&self) -> bool {
        self.filling > 0
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> (&Slot, usize) {
        let index = index as u64;
        let slot = self.slots.get((index >> self.shift) as usize).unwrap_or(&Slot::Absent);
        (slot, (index & ((1u64 << self.shift) - 1)) as usize)
    }

    /// The entry at `index`, if it is there.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<u32> {
        if self.present == 0 {
            return None;
        }
        step();
        match self.slot(index) {
            (Slot::Sealed(values), at) => Some(values.get(at) as u32),
            (Slot::Filling(filling), at) => filling.get(at),
            (Slot::Absent, _) => None,
        }
    }

    /// Stores what a query found, where a slice is being filled.
    #[inline]
    pub(crate) fn store(&self, index: usize, value: u32) {
        if let (Slot::Filling(filling), at) = self.slot(index) {
            filling.store(at, value);
        }
    }

    /// Stores what a building pass computed.
    #[inline]
    pub(crate) fn put(&self, index: usize, value: u32) {
        if let (Slot::Filling(filling), at) = self.slot(index) {
            filling.put(at, value);
        }
    }

    pub(crate) fn filling(&self, slice: usize) -> Option<&Arc<Filling>> {
        if let Some(Slot::Filling(filling)) = self.slots.get(slice) { Some(filling) } else { None }
    }
}
