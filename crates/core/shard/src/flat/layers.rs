//! Layers for flat text that is open already, many chains side by side and in steps that threads share.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_types::{Error, Result};

use super::BASE_RATE;
use crate::base::Base;
use crate::layers::filling::Filling;
use crate::layers::id::{LayerId, LayerKind};
use crate::layers::shape::{Shape, rate_place};
use crate::layers::sliced::{Sliced, Slot};
use crate::layers::{LayerSet, write_array};

const STEP_SAMPLES: u32 = 4096;
/// Chains that go on side by side.
const CHAINS: usize = 24;

/// Builds any set of layers of a flat text in one pass: a chain from each sample of the base to the next.
///
/// The steps may run in any order and on any threads; then the parts are written.
pub struct FlatLayerBuilder {
    base: Arc<Base>,
    ids: Vec<LayerId>,
    sa: Vec<Sliced>,
    isa: Vec<Sliced>,
}

/// One chain of the pass.
struct Lane {
    row: u32,
    /// The byte of the text that the row is at, and the one to stop at.
    position: u32,
    end: u32,
    /// Whether the row is where the byte begins, not the second of its symbols.
    begins: bool,
}

impl FlatLayerBuilder {
    pub(crate) fn new(base: Arc<Base>, ids: &[LayerId]) -> Result<Self> {
        let LayerSet { sa_rates: mut sa, isa_rates: mut isa, .. } = LayerSet::empty(&base);
        for id in ids {
            let shape = Shape::of(&base, id.kind, id.which).filter(|shape| (id.slice as usize) < shape.slices());
            let array = match id.kind {
                LayerKind::SaRate => sa.get_mut(id.which as usize),
                LayerKind::IsaRate => isa.get_mut(id.which as usize),
                _ => None,
            };
            let (Some(shape), Some(array)) = (shape, array) else {
                return Err(Error::invalid(format!("this text can't have a layer {id}")));
            };
            let range = shape.range(id.slice);
            array.set(id.slice as usize, Slot::Filling(Arc::new(Filling::new((range.end - range.start) as usize))));
        }
        Ok(Self { base, ids: ids.to_vec(), sa, isa })
    }

    pub(crate) fn everything(&self) -> Range<u32> {
        0..(self.base.numbers.input_bytes / u64::from(BASE_RATE) + 1) as u32
    }

    /// The steps: ranges of samples for [`run`](Self::run).
    pub fn steps(&self) -> Vec<Range<u32>> {
        let all = self.everything();
        (0..all.end).step_by(STEP_SAMPLES as usize).map(|from| from..all.end.min(from + STEP_SAMPLES)).collect()
    }

    /// Walks from each sample of one step to the next.
    pub fn run(&self, step: Range<u32>) {
        let (base, psi) = (&*self.base, &self.base.psi);
        let last = base.numbers.input_bytes as u32;
        for from in step.clone().step_by(CHAINS) {
            let begin = |sample: u32| Lane {
                row: base.starts.get(sample as usize) as u32,
                position: sample * BASE_RATE,
                end: (sample + 1) * BASE_RATE,
                begins: true,
            };
            let mut lanes: Vec<Lane> = (from..step.end.min(from + CHAINS as u32)).map(begin).collect();
            // Two symbols a byte at most; a bound for damage that checksums did not see.
            for _ in 0..2 * BASE_RATE {
                for lane in &lanes {
                    psi.prefetch_payload(psi.place(lane.row));
                }
                lanes.retain_mut(|lane| {
                    let (which, entry) = rate_place(u64::from(lane.row));
                    self.sa[which as usize].put(entry as usize, lane.position);
                    if lane.begins {
                        let (which, entry) = rate_place(u64::from(lane.position));
                        self.isa[which as usize].put(entry as usize, lane.row);
                    }
                    let place = psi.place(lane.row);
                    lane.begins = !base.alphabet.is_first(place.symbol);
                    lane.position += u32::from(lane.begins);
                    lane.row = psi.next(place, lane.row);
                    psi.prefetch(lane.row);
                    lane.position < lane.end && lane.position <= last
                });
            }
        }
    }

    /// Writes the parts, after all steps have run.
    pub fn finish(self) -> Result<Vec<(LayerId, Bytes)>> {
        let write = |id: &LayerId| {
            let array = if id.kind == LayerKind::SaRate { &self.sa } else { &self.isa };
            let values = array[id.which as usize].filling(id.slice as usize).and_then(|filling| filling.with_gaps());
            let values = values.ok_or_else(|| Error::internal(format!("layer {id} was not begun")))?;
            Ok((*id, Bytes::from(write_array(&self.base, *id, &values))))
        };
        self.ids.iter().map(write).collect()
    }
}
