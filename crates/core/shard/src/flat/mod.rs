//! Flat text: substring search and extraction anywhere, by the papers' uniformly sampled arrays alone.

pub(crate) mod build;
pub(crate) mod layers;

use std::ops::{Deref, Range};

use bytes::Bytes;
use forebay_types::{Error, Result};

use crate::base::Base;
use crate::interval::Suffixes;
use crate::layers::LayerSet;
use crate::layers::id::{LayerId, LayerKind};
use crate::layers::layered::Layered;
use crate::layers::shape::{RATE_MAX, Shape, rate_place};
use crate::model::alphabet::Meaning;
use crate::psi::Place;
use crate::sections::ALL;
use layers::FlatLayerBuilder;

/// Rows, and positions, between the samples that every flat text has.
pub(crate) const BASE_RATE: u32 = 128;

/// Walks that go on side by side.
const BATCH: usize = 24;

/// A shard of flat text over the bytes of its parts. Layers come and go under readers as in [`Shard`](crate::Shard).
pub struct FlatText(Layered);

impl Deref for FlatText {
    type Target = Layered;

    fn deref(&self) -> &Layered {
        &self.0
    }
}

/// Where one walk is, and how far from where it began.
struct Walk {
    row: u32,
    steps: u32,
    bytes: u32,
    place: Place,
}

/// The layers that bring a text to `ratio`: coarse rates first; for extraction too, or for search alone.
pub(crate) fn dial(base: &Base, ratio: f64, extraction: bool) -> Vec<LayerId> {
    let mut budget = ratio * base.numbers.input_bytes as f64 - base.bytes as f64;
    let mut chosen = Vec::new();
    for which in (0..RATE_MAX).rev() {
        for kind in [LayerKind::SaRate, LayerKind::IsaRate] {
            if kind == LayerKind::IsaRate && !extraction {
                continue;
            }
            let Some(shape) = Shape::of(base, kind, which) else { continue };
            for slice in 0..shape.slices() as u32 {
                budget -= shape.slice_bytes(slice) + 160.0;
                if budget < 0.0 {
                    return chosen;
                }
                chosen.push(LayerId { kind, which, slice });
            }
        }
    }
    chosen
}

impl FlatText {
    /// Verifies the parts and puts them together.
    pub fn open(base: Bytes, layers: impl IntoIterator<Item = Bytes>) -> Result<Self> {
        let base = Base::open(base)?;
        if base.numbers.flat == 0 {
            return Err(Error::invalid("this shard holds records, not flat text; open it as records"));
        }
        base.need(ALL)?;
        Layered::new(base, layers).map(Self)
    }

    /// Bytes of the text.
    pub fn len(&self) -> u64 {
        self.base.numbers.input_bytes
    }

    /// Whether the text has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all parts to those of the text.
    pub fn ratio(&self) -> f64 {
        let layers: usize = self.layers().iter().map(|layer| layer.bytes).sum();
        (self.base.bytes + layers) as f64 / self.len().max(1) as f64
    }

    fn rows(&self, pattern: &[u8]) -> Range<u32> {
        let mut symbols = Vec::with_capacity(pattern.len());
        if self.base.alphabet.encode(pattern, &mut symbols) { self.base.prefix(&symbols) } else { 0..0 }
    }

    /// How often `pattern` occurs; the empty one nowhere.
    pub fn count(&self, pattern: &[u8]) -> u64 {
        self.rows(pattern).len() as u64
    }

    /// Where `pattern` occurs, in order.
    pub fn search(&self, pattern: &[u8]) -> Vec<u32> {
        let rows = self.rows(pattern);
        let mut found = Vec::with_capacity(rows.len());
        self.locate(rows, &mut found);
        found.sort_unstable();
        found
    }

    /// Walks each row to a sampled one; the samples say the position, and the steps how far it is (Succinct, section 3).
    fn locate(&self, mut rows: Range<u32>, found: &mut Vec<u32>) {
        let (psi, set) = (&self.base.psi, self.layers.load());
        let mut walks: Vec<Walk> = Vec::with_capacity(BATCH);
        loop {
            while walks.len() < BATCH {
                let Some(row) = rows.next() else { break };
                psi.prefetch(row);
                walks.push(Walk { row, steps: 0, bytes: 0, place: Place::default() });
            }
            if walks.is_empty() {
                return;
            }
            let mut at = 0;
            while at < walks.len() {
                let walk = &mut walks[at];
                match self.position(&set, walk.row) {
                    Some(position) => {
                        found.push(position.saturating_sub(walk.bytes));
                        walks.swap_remove(at);
                    }
                    // A bound for damage that checksums did not see.
                    None if u64::from(walk.steps) > self.base.numbers.symbols => {
                        walks.swap_remove(at);
                    }
                    None => {
                        walk.place = psi.place(walk.row);
                        psi.prefetch_payload(walk.place);
                        at += 1;
                    }
                }
            }
            for walk in &mut walks {
                walk.row = psi.next(walk.place, walk.row);
                walk.steps += 1;
                walk.bytes += u32::from(!self.base.alphabet.is_first(walk.place.symbol));
                psi.prefetch(walk.row);
            }
        }
    }

    /// The position of the suffix of `row`, if it is sampled.
    #[inline(always)]
    fn position(&self, set: &LayerSet, row: u32) -> Option<u32> {
        if row.is_multiple_of(BASE_RATE) {
            return Some(self.base.owners.get((row / BASE_RATE) as usize) as u32);
        }
        let (which, entry) = rate_place(u64::from(row));
        set.sa_rates[which as usize].get(entry as usize)
    }

    /// Up to `length` bytes of the text from `offset` on.
    pub fn extract(&self, offset: u64, length: usize) -> Vec<u8> {
        let (psi, set) = (&self.base.psi, self.layers.load());
        let end = self.len().min(offset.saturating_add(length as u64));
        if offset >= end {
            return Vec::new();
        }
        // The nearest sample at or before the offset.
        let coarse = offset / u64::from(BASE_RATE) * u64::from(BASE_RATE);
        let sample = (coarse + 1..=offset).rev().find_map(|position| {
            let (which, entry) = rate_place(position);
            Some((position, set.isa_rates[which as usize].get(entry as usize)?))
        });
        let base_sample = || (coarse, self.base.starts.get((coarse / u64::from(BASE_RATE)) as usize) as u32);
        let (mut position, mut row) = sample.unwrap_or_else(base_sample);
        let mut out = Vec::with_capacity((end - offset) as usize);
        let mut upper = 0;
        // Two symbols a byte at most; a bound for damage that checksums did not see.
        for _ in 0..2 * (end - position) {
            let place = psi.place(row);
            let byte = match self.base.alphabet.meaning(place.symbol) {
                Meaning::Byte(byte) => Some(byte),
                Meaning::Second(lower) => Some(self.base.alphabet.pair(upper, lower)),
                Meaning::First(first) => {
                    upper = first;
                    None
                }
                Meaning::Delimiter(_) | Meaning::Null | Meaning::End => break,
            };
            if let Some(byte) = byte {
                if position >= offset {
                    out.push(byte);
                }
                position += 1;
                if position == end {
                    break;
                }
            }
            row = psi.next(place, row);
        }
        out
    }

    /// The layers that bring the text to `ratio`, or as near below as slices allow: for search alone, or for extraction too.
    pub fn dial(&self, ratio: f64, extraction: bool) -> Vec<LayerId> {
        dial(&self.base, ratio, extraction)
    }

    /// A builder of the layers `ids`.
    pub fn layer_builder(&self, ids: &[LayerId]) -> Result<FlatLayerBuilder> {
        FlatLayerBuilder::new(self.base.clone(), ids)
    }
}
