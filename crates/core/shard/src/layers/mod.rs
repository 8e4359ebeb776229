//! Layers: what a shard can have beyond its base, to answer faster. Each is cut into slices that come and go singly: queries hold the set
//! of one moment, and a change makes the next one.

pub(crate) mod build;
pub(crate) mod filling;
pub(crate) mod id;
pub(crate) mod layered;
mod pass;
pub(crate) mod plan;
pub(crate) mod shape;
mod sink;
pub(crate) mod sliced;
pub(crate) mod texts;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use forebay_types::{Error, Result};

use crate::base::Base;
use crate::bits::Packed;
use crate::inverted::index::IndexSlice;
use crate::inverted::postings::{Postings, PostingsSlice};
use crate::part::{self, Part};
use crate::record::blocks::BlockSlice;
use crate::record::plain::PlainSlice;
use filling::Filling;
use id::{LayerId, LayerKind};
use shape::{RATE_MAX, Shape};
use sliced::{Sliced, Slot};

/// One slice in a set, for reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerInfo {
    /// Which slice.
    pub id: LayerId,
    /// Bytes it takes: its part, or the array that is being filled.
    pub bytes: usize,
    /// The part of its values that are there: 1 unless it is being filled.
    pub filled: f64,
}

/// A layer's part that verified: it can be put into its shard, which can't fail any more.
#[derive(Clone, Debug)]
pub struct VerifiedLayer {
    id: LayerId,
    part: Part,
}

impl VerifiedLayer {
    /// Verifies a part of a layer of the shard with this base.
    pub(crate) fn new(base: &Base, bytes: Bytes) -> Result<Self> {
        let part = Part::open(bytes)?;
        let id = LayerId::from_codes(part.kind, part.id).ok_or_else(|| Error::invalid("this part of a shard is not a layer"))?;
        if part.shard != base.identity {
            return Err(Error::conflict(format!("layer {id} belongs to another shard; build it from this one")));
        }
        let shape = Shape::of(base, id.kind, id.which).filter(|shape| (id.slice as usize) < shape.slices());
        if shape.is_none() {
            return Err(Error::invalid(format!("this shard can't have a layer {id}")));
        }
        Ok(Self { id, part })
    }

    /// Which slice it is.
    pub fn id(&self) -> LayerId {
        self.id
    }
}

/// The layers that one query sees. A change makes another set; this one lives as long as someone reads it.
#[derive(Clone, Debug)]
pub(crate) struct LayerSet {
    /// By attribute; that of attribute 0 is the base's.
    pub(crate) isa: Vec<Sliced>,
    pub(crate) sa: Vec<Sliced>,
    /// By the logarithm of the rate.
    pub(crate) sa_rates: Vec<Sliced>,
    pub(crate) isa_rates: Vec<Sliced>,
    pub(crate) blocks: Vec<Option<BlockSlice>>,
    pub(crate) blocks_shift: u32,
    pub(crate) plain: Vec<Option<PlainSlice>>,
    pub(crate) plain_shift: u32,
    pub(crate) index: Vec<Vec<Option<Arc<IndexSlice>>>>,
    pub(crate) postings: Vec<Postings>,
    /// Whether anything is being filled, so that walks should keep what they pass.
    pub(crate) filling: bool,
    /// Whether any 2^k layer of rows has a slice.
    pub(crate) any_rate: bool,
    bytes: BTreeMap<LayerId, usize>,
}

impl LayerSet {
    /// The set of no layers.
    pub(crate) fn empty(base: &Base) -> Self {
        let sliced = |kind, which| {
            Shape::of(base, kind, which).map_or_else(|| Sliced::new(0, 0), |shape| Sliced::new(shape.shift, shape.slices()))
        };
        let attributes = base.schema.attributes.len() as u16;
        let mut isa: Vec<Sliced> = (0..attributes).map(|which| sliced(LayerKind::IsaAttribute, which)).collect();
        let mut sa: Vec<Sliced> = (0..attributes).map(|which| sliced(LayerKind::SaAttribute, which)).collect();
        if let (Some(isa), Some(sa)) = (isa.first_mut(), sa.first_mut()) {
            *isa = Sliced::whole(base.starts.clone());
            *sa = Sliced::whole(base.owners.clone());
        }
        let shape = |kind, which| Shape::of(base, kind, which);
        let slices = |kind, which| shape(kind, which).map_or(0, |shape| shape.slices());
        let shift = |kind| shape(kind, 0).map_or(0, |shape: Shape| shape.shift);
        Self {
            isa,
            sa,
            sa_rates: (0..RATE_MAX).map(|which| sliced(LayerKind::SaRate, which)).collect(),
            isa_rates: (0..RATE_MAX).map(|which| sliced(LayerKind::IsaRate, which)).collect(),
            blocks: vec![None; slices(LayerKind::Blocks, 0)],
            blocks_shift: shift(LayerKind::Blocks),
            plain: vec![None; slices(LayerKind::Plain, 0)],
            plain_shift: shift(LayerKind::Plain),
            index: (0..attributes).map(|which| vec![None; slices(LayerKind::Index, which)]).collect(),
            postings: (0..attributes)
                .map(|which| {
                    let shape = shape(LayerKind::Postings, which);
                    shape.map_or_else(Postings::default, |shape| Postings::new(shape.shift, shape.slices()))
                })
                .collect(),
            filling: false,
            any_rate: false,
            bytes: BTreeMap::new(),
        }
    }

    /// Puts a layer in; it takes the place of a slice that is there already.
    pub(crate) fn put(&mut self, base: &Base, layer: &VerifiedLayer) {
        assert_eq!(layer.part.shard, base.identity, "layer {} is of this shard", layer.id);
        self.place(base, layer.id, Some(Source::Sealed(&layer.part)));
        self.bytes.insert(layer.id, layer.part.bytes);
        self.check();
    }

    /// Takes layers out, and puts others in.
    pub(crate) fn replace(&mut self, base: &Base, gone: &[LayerId], new: &[VerifiedLayer]) {
        gone.iter().for_each(|id| self.remove(base, *id));
        new.iter().for_each(|layer| self.put(base, layer));
    }

    /// Begins to fill a slice from what queries find.
    pub(crate) fn begin_filling(&mut self, base: &Base, id: LayerId) -> Result<()> {
        // Queries pass the starts of attributes; samples by rate lie between them, and no query meets all of a slice.
        let passed = matches!(id.kind, LayerKind::IsaAttribute | LayerKind::SaAttribute);
        let shape = Shape::of(base, id.kind, id.which)
            .filter(|shape| passed && (id.slice as usize) < shape.slices())
            .ok_or_else(|| Error::invalid(format!("layer {id} can't be filled by queries; build it")))?;
        if self.bytes.contains_key(&id) {
            return Err(Error::invalid(format!("layer {id} is there already")));
        }
        let range = shape.range(id.slice);
        let count = (range.end - range.start) as usize;
        self.place(base, id, Some(Source::Filling(Arc::new(Filling::new(count)))));
        self.bytes.insert(id, count * 4);
        self.check();
        Ok(())
    }

    /// Takes a slice out, if it is there.
    pub(crate) fn remove(&mut self, base: &Base, id: LayerId) {
        if self.bytes.remove(&id).is_some() {
            self.place(base, id, None);
        }
        self.check();
    }

    /// The part of a slice that queries have filled; `None` while values are missing.
    pub(crate) fn seal(&self, base: &Base, id: LayerId) -> Option<Vec<u8>> {
        let filling = self.array(id)?.filling(id.slice as usize)?;
        let values = if filling.filled() == filling.len() { filling.complete()? } else { return None };
        Some(write_array(base, id, &values))
    }

    /// Every slice, with what it takes.
    pub(crate) fn infos(&self) -> Vec<LayerInfo> {
        let filled = |id: LayerId| {
            let filling = self.array(id).and_then(|array| array.filling(id.slice as usize));
            filling.map_or(1.0, |filling| filling.filled() as f64 / filling.len().max(1) as f64)
        };
        self.bytes.iter().map(|(id, bytes)| LayerInfo { id: *id, bytes: *bytes, filled: filled(*id) }).collect()
    }

    /// What takes bytes is in its place, and nothing else is. O(slices).
    fn check(&self) {
        debug_assert_eq!(self.present(), self.bytes.len(), "each slice that is in its place has its bytes");
    }

    /// How many slices are there beside the base's own.
    fn present(&self) -> usize {
        let arrays = self.isa.iter().skip(1).chain(self.sa.iter().skip(1)).chain(&self.sa_rates).chain(&self.isa_rates);
        let arrays: usize = arrays.map(Sliced::present).sum();
        let postings: usize = self.postings.iter().map(Postings::present).sum();
        let index = self.index.iter().flatten().flatten().count();
        arrays + postings + index + self.blocks.iter().flatten().count() + self.plain.iter().flatten().count()
    }

    fn array(&self, id: LayerId) -> Option<&Sliced> {
        match id.kind {
            LayerKind::IsaAttribute => self.isa.get(id.which as usize),
            LayerKind::SaAttribute => self.sa.get(id.which as usize),
            LayerKind::SaRate => self.sa_rates.get(id.which as usize),
            LayerKind::IsaRate => self.isa_rates.get(id.which as usize),
            _ => None,
        }
    }

    fn place(&mut self, base: &Base, id: LayerId, source: Option<Source<'_>>) {
        let (which, slice) = (id.which as usize, id.slice as usize);
        let part = if let Some(Source::Sealed(part)) = &source { Some(*part) } else { None };
        match id.kind {
            LayerKind::Blocks => self.blocks[slice] = part.map(BlockSlice::open),
            LayerKind::Plain => self.plain[slice] = part.map(PlainSlice::open),
            LayerKind::Index => self.index[which][slice] = part.map(|part| Arc::new(IndexSlice::open(part))),
            LayerKind::Postings => {
                self.postings[which].set(slice, part.map(|part| PostingsSlice::open(part, base.record_bits())));
            }
            kind => {
                let slot = match source {
                    None => Slot::Absent,
                    Some(Source::Sealed(part)) => Slot::Sealed(Packed::new(part.section(0), array_bits(base, kind))),
                    Some(Source::Filling(filling)) => Slot::Filling(filling),
                };
                let array = match kind {
                    LayerKind::IsaAttribute => &mut self.isa[which],
                    LayerKind::SaAttribute => &mut self.sa[which],
                    LayerKind::SaRate => &mut self.sa_rates[which],
                    _ => &mut self.isa_rates[which],
                };
                array.set(slice, slot);
            }
        }
        let arrays = || self.isa.iter().chain(&self.sa).chain(&self.sa_rates).chain(&self.isa_rates);
        self.filling = arrays().any(Sliced::any_filling);
        self.any_rate = self.sa_rates.iter().any(Sliced::any);
    }
}

enum Source<'p> {
    Sealed(&'p Part),
    Filling(Arc<Filling>),
}

/// Bits of an entry of an array layer.
fn array_bits(base: &Base, kind: LayerKind) -> u32 {
    match kind {
        LayerKind::SaRate if base.numbers.flat == 1 => base.position_bits(),
        LayerKind::IsaRate => base.row_bits(),
        _ => base.record_bits(),
    }
}

/// The part of an array layer.
pub(crate) fn write_array(base: &Base, id: LayerId, values: &[u32]) -> Vec<u8> {
    let max = (1u64 << array_bits(base, id.kind)) - 1;
    let packed = crate::bits::pack(values.iter().map(|value| u64::from(*value) & max), max);
    part::write(id.kind.code(), Some(base.identity), id.code(), &[&packed])
}
