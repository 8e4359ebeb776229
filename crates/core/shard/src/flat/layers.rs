use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_types::{Error, Result};

use super::BASE_RATE;
use crate::base::Base;
use crate::layers::filling::Filling;
use crate::layers::id::{LayerId, LayerKind};
use crate::layers::set::{LayerSet, write_array};
use crate::layers::shape::{Shape, rate_place};
use crate::layers::sliced::{Sliced, Slot};

/// Samples of a step.
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
        0..(self.base.numbers.symbols / u64::from(BASE_RATE) + 1) as u32
    }

    /// The steps: ranges of samples for [`run`](Self::run).
    pub fn steps(&self) -> Vec<Range<u32>> {
        let all = self.everything();
        (0..all.end).step_by(STEP_SAMPLES as usize).map(|from| from..all.end.min(from + STEP_SAMPLES)).collect()
    }

    /// Walks from each sample of one step to the next.
    pub fn run(&self, step: Range<u32>) {
        let psi = &self.base.psi;
        let mut rows = [0u32; CHAINS];
        for from in step.clone().step_by(CHAINS) {
            let lanes = (step.end - from).min(CHAINS as u32) as usize;
            for (lane, row) in rows[..lanes].iter_mut().enumerate() {
                *row = self.base.starts.get(from as usize + lane) as u32;
            }
            for offset in 0..BASE_RATE {
                for row in &rows[..lanes] {
                    psi.prefetch_payload(psi.place(*row));
                }
                for (lane, row) in rows[..lanes].iter_mut().enumerate() {
                    let position = u64::from((from + lane as u32) * BASE_RATE + offset);
                    if position > self.base.numbers.symbols {
                        continue;
                    }
                    let (which, entry) = rate_place(u64::from(*row));
                    self.sa[which as usize].put(entry as usize, position as u32);
                    let (which, entry) = rate_place(position);
                    self.isa[which as usize].put(entry as usize, *row);
                    *row = psi.next(psi.place(*row), *row);
                    psi.prefetch(*row);
                }
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
