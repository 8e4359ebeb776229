//! The plan of a pass that builds layers: which values of psi's chains it wants, and which ranges threads take.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use forebay_types::{Error, Result};
use zstd::zstd_safe::CDict;

use super::LayerSet;
use super::filling::Filling;
use super::id::{LayerId, LayerKind};
use super::shape::{Shape, rate_place};
use super::sliced::{Sliced, Slot};
use super::texts::Text;
use crate::base::{Base, section_of};
use crate::record::blocks;
use crate::record::codes::Numbers;
use crate::sections::ALL;

/// Records of a step: a fraction of a second's work.
const STEP_RECORDS: u32 = 4096;

/// The hashes of the values of one attribute, by row of its column.
type Hashes = Box<[AtomicU64]>;

/// Builds any set of layers in one pass over the records' chains, about one psi step a symbol of the text.
///
/// The steps may run in any order and on any threads; then the parts are written.
pub struct LayerBuilder {
    pub(super) base: Arc<Base>,
    pub(super) ids: Vec<LayerId>,
    pub(super) isa: Vec<Sliced>,
    pub(super) sa: Vec<Sliced>,
    pub(super) sa_rates: Vec<Sliced>,
    /// Whether each row is wanted, or only those of delimiters.
    pub(super) every_row: bool,
    pub(super) blocks: Vec<Range<u64>>,
    /// The dictionary of the blocks, if there are any to build.
    pub(super) packer: Option<CDict<'static>>,
    /// The numbers of values in blocks.
    pub(super) numbers: Numbers,
    pub(super) plain: Vec<Range<u64>>,
    /// By attribute, for those whose values are grouped.
    pub(super) hashes: Vec<Option<Hashes>>,
    pub(super) texts: Mutex<Vec<Text>>,
}

impl LayerBuilder {
    /// Without layers to build, who reads by it verifies what that needs.
    pub(crate) fn new(base: Arc<Base>, ids: &[LayerId]) -> Result<Self> {
        if !ids.is_empty() {
            base.need(ALL)?;
        }
        let LayerSet { isa, sa, sa_rates, .. } = LayerSet::empty(&base);
        let mut builder = Self {
            ids: ids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
            isa,
            sa,
            sa_rates,
            every_row: false,
            blocks: Vec::new(),
            packer: None,
            numbers: Numbers::new(),
            plain: Vec::new(),
            hashes: base.schema.attributes.iter().map(|_| None).collect(),
            texts: Mutex::new(Vec::new()),
            base,
        };
        for index in 0..builder.ids.len() {
            builder.prepare(builder.ids[index])?;
        }
        // The end of the text is a row too, which belongs to the last record.
        builder.row(builder.base.records().saturating_sub(1), 0);
        Ok(builder)
    }

    fn prepare(&mut self, id: LayerId) -> Result<()> {
        let shape = Shape::of(&self.base, id.kind, id.which).filter(|shape| (id.slice as usize) < shape.slices());
        let shape = shape.ok_or_else(|| Error::invalid(format!("this shard can't have a layer {id}")))?;
        let range = shape.range(id.slice);
        let slot = |range: &Range<u64>| Slot::Filling(Arc::new(Filling::new((range.end - range.start) as usize)));
        let (which, slice) = (id.which as usize, id.slice as usize);
        match id.kind {
            LayerKind::IsaAttribute => self.isa[which].set(slice, slot(&range)),
            LayerKind::SaAttribute => self.sa[which].set(slice, slot(&range)),
            LayerKind::SaRate => {
                self.every_row = true;
                self.sa_rates[which].set(slice, slot(&range));
            }
            LayerKind::Blocks => {
                if self.packer.is_none() {
                    self.packer = Some(blocks::packer(section_of(&self.base.dictionary)));
                    self.numbers = self.base.codes.numbers();
                }
                self.blocks.push(range);
            }
            LayerKind::Plain => self.plain.push(range),
            LayerKind::Index | LayerKind::Postings => {
                let hashes = &mut self.hashes[which];
                hashes.get_or_insert_with(|| (0..self.base.records()).map(|_| AtomicU64::new(0)).collect());
                // The records of the rows are found in the pass, as for the array of the attribute.
                if let Some(array) = Shape::of(&self.base, LayerKind::SaAttribute, id.which) {
                    for slice in (range.start >> array.shift)..=((range.end - 1) >> array.shift) {
                        if self.sa[which].filling(slice as usize).is_none() {
                            self.sa[which].set(slice as usize, slot(&array.range(slice as u32)));
                        }
                    }
                }
            }
            LayerKind::IsaRate => return Err(Error::invalid("layers of positions are for flat text")),
        }
        Ok(())
    }

    /// Takes the record of a row, for the layer of its rate.
    #[inline(always)]
    pub(super) fn row(&self, record: u32, row: u32) {
        let (which, entry) = rate_place(u64::from(row));
        self.sa_rates[which as usize].put(entry as usize, record);
    }

    /// The steps: ranges of records for [`run`](Self::run).
    pub fn steps(&self) -> Vec<Range<u32>> {
        use LayerKind::{Index, Postings, SaAttribute};
        let all = self.every_row || self.ids.iter().any(|id| matches!(id.kind, SaAttribute | Index | Postings));
        let records = self.base.records();
        let wanted = |step: &Range<u32>| {
            let wanted = |range: &Range<u64>| range.start < u64::from(step.end) && u64::from(step.start) < range.end;
            let isa = |id: &LayerId| {
                id.kind == LayerKind::IsaAttribute
                    && Shape::of(&self.base, id.kind, id.which).is_some_and(|shape| wanted(&shape.range(id.slice)))
            };
            all || self.blocks.iter().chain(&self.plain).any(wanted) || self.ids.iter().any(isa)
        };
        let step = |from| from..records.min(from + STEP_RECORDS);
        (0..records).step_by(STEP_RECORDS as usize).map(step).filter(wanted).collect()
    }
}
