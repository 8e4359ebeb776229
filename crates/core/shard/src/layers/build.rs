use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use forebay_types::{Error, Result};

use super::filling::Filling;
use super::id::{LayerId, LayerKind};
use super::set::{LayerSet, write_array};
use super::shape::{Shape, rate_place};
use super::sliced::{Sliced, Slot};
use super::texts::{Sink, Text, gather};
use crate::base::Base;
use crate::keys::KeyIndex;
use crate::model::alphabet::Meaning;
use crate::model::key::Key;
use crate::part;
use crate::psi::Place;
use crate::query::index::IndexWriter;
use crate::query::interval::Suffixes;
use crate::record::blocks::{self, BLOCK_RECORDS};
use crate::record::output::Record;
use crate::record::plain;

/// Records of a step: a fraction of a second's work.
const STEP_RECORDS: u32 = 4096;
/// Chains that go on side by side: those of one block.
const CHAINS: usize = BLOCK_RECORDS as usize;

/// Builds any set of layers in one pass over the records' chains, about one psi step a symbol of the text.
///
/// The steps may run in any order and on any threads; then the parts are written.
pub struct LayerBuilder {
    pub(super) base: Arc<Base>,
    ids: Vec<LayerId>,
    isa: Vec<Sliced>,
    sa: Vec<Sliced>,
    sa_rates: Vec<Sliced>,
    /// Whether each row is wanted, or only those of delimiters.
    every_row: bool,
    pub(super) blocks: Vec<Range<u64>>,
    pub(super) plain: Vec<Range<u64>>,
    texts: Mutex<Vec<Text>>,
}

impl LayerBuilder {
    pub(crate) fn new(base: Arc<Base>, ids: &[LayerId]) -> Result<Self> {
        let LayerSet { isa, sa, sa_rates, .. } = LayerSet::empty(&base);
        let mut builder = Self {
            ids: ids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
            isa,
            sa,
            sa_rates,
            every_row: false,
            blocks: Vec::new(),
            plain: Vec::new(),
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
        let slot = || Slot::Filling(Arc::new(Filling::new((range.end - range.start) as usize)));
        let (which, slice) = (id.which as usize, id.slice as usize);
        match id.kind {
            LayerKind::IsaAttribute => self.isa[which].set(slice, slot()),
            LayerKind::SaAttribute => self.sa[which].set(slice, slot()),
            LayerKind::SaRate => {
                self.every_row = true;
                self.sa_rates[which].set(slice, slot());
            }
            LayerKind::Blocks => self.blocks.push(range),
            LayerKind::Plain => self.plain.push(range),
            // The records of an index's rows are found in the pass, as for the array of the attribute.
            LayerKind::Index if which > 0 => {
                let array = Shape::of(&self.base, LayerKind::SaAttribute, id.which).ok_or_else(|| Error::internal("no array"))?;
                for slice in (range.start >> array.shift)..=((range.end - 1) >> array.shift) {
                    if self.sa[which].filling(slice as usize).is_none() {
                        let range = array.range(slice as u32);
                        let filling = Filling::new((range.end - range.start) as usize);
                        self.sa[which].set(slice as usize, Slot::Filling(Arc::new(filling)));
                    }
                }
            }
            LayerKind::Index => {}
            LayerKind::IsaRate => return Err(Error::invalid("layers of positions are for flat text")),
        }
        Ok(())
    }

    /// The steps: ranges of records for [`run`](Self::run).
    pub fn steps(&self) -> Vec<Range<u32>> {
        let all = self.every_row || self.ids.iter().any(|id| matches!(id.kind, LayerKind::SaAttribute | LayerKind::Index));
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

    /// Walks the records of one step.
    pub fn run(&self, step: Range<u32>) -> Result<()> {
        let mut sink = Sink::new(self, step.start);
        let mut from = step.start;
        let mut lanes: Vec<Lane> = (0..CHAINS).map(|_| Lane::default()).collect();
        while from < step.end {
            let to = step.end.min(from + CHAINS as u32);
            let lanes = &mut lanes[..(to - from) as usize];
            self.walk(from, lanes, sink.texts);
            for lane in lanes {
                sink.record(&lane.output)?;
            }
            from = to;
        }
        self.keep(sink);
        Ok(())
    }

    /// Steps the chains of records from `first` on, one a lane, to the ends of the records.
    fn walk(&self, first: u32, lanes: &mut [Lane], texts: bool) {
        let (base, psi) = (&*self.base, &self.base.psi);
        let start = base.delimiter_column(0).start;
        for (index, lane) in lanes.iter_mut().enumerate() {
            lane.record = first + index as u32;
            lane.row = start + base.starts.get(lane.record as usize) as u32;
            lane.place = psi.place(lane.row);
            (lane.attribute, lane.first) = (0, None);
            lane.output.clear();
            self.delimiter(lane.record, 0, lane.row);
        }
        let mut active: Vec<usize> = (0..lanes.len()).collect();
        for _ in 0..=base.numbers.longest {
            if active.is_empty() {
                return;
            }
            for at in &active {
                let lane = &mut lanes[*at];
                lane.row = psi.next(lane.place, lane.row);
                psi.prefetch(lane.row);
            }
            active.retain(|at| {
                let lane = &mut lanes[*at];
                lane.place = psi.place(lane.row);
                psi.prefetch_payload(lane.place);
                let inside = lane.symbol(base, texts);
                if inside {
                    if let Meaning::Delimiter(attribute) = base.alphabet.meaning(lane.place.symbol) {
                        self.delimiter(lane.record, attribute as usize, lane.row);
                    }
                    if self.every_row {
                        self.row(lane.record, lane.row);
                    }
                }
                inside
            });
        }
    }

    #[inline(always)]
    fn delimiter(&self, record: u32, attribute: usize, row: u32) {
        let index = row - self.base.delimiter_column(attribute).start;
        if self.isa[attribute].any_filling() {
            self.isa[attribute].put(record as usize, index);
        }
        if self.sa[attribute].any_filling() {
            self.sa[attribute].put(index as usize, record);
        }
        if attribute == 0 && self.every_row {
            self.row(record, row);
        }
    }

    #[inline(always)]
    fn row(&self, record: u32, row: u32) {
        let (which, entry) = rate_place(u64::from(row));
        self.sa_rates[which as usize].put(entry as usize, record);
    }

    /// The pass over a text that is at hand, with the row of each position.
    pub(crate) fn run_from_text(&self, text: &[u8], rows: &[u32]) -> Result<()> {
        let base = &*self.base;
        let mut sink = Sink::new(self, 0);
        let mut lane = Lane::default();
        let mut begun = false;
        let mut record = 0;
        for (position, symbol) in text.iter().enumerate() {
            if *symbol == base.alphabet.delimiter(0) {
                if begun {
                    lane.output.end_value(std::mem::take(&mut lane.null));
                    sink.record(&lane.output)?;
                    record += 1;
                }
                begun = true;
                lane.output.clear();
                (lane.attribute, lane.first) = (0, None);
                self.delimiter(record, 0, rows[position]);
                continue;
            }
            lane.place.symbol = *symbol;
            lane.symbol(base, sink.texts);
            if let Meaning::Delimiter(attribute) = base.alphabet.meaning(*symbol) {
                self.delimiter(record, attribute as usize, rows[position]);
            }
            if self.every_row {
                self.row(record, rows[position]);
            }
        }
        if begun {
            lane.output.end_value(std::mem::take(&mut lane.null));
            sink.record(&lane.output)?;
        }
        self.keep(sink);
        Ok(())
    }

    fn keep(&self, mut sink: Sink<'_>) {
        if sink.texts {
            sink.text.frame_offsets.push(sink.text.frames.len() as u64);
            sink.text.body_offsets.push(sink.text.bodies.len() as u64);
            self.texts.lock().unwrap_or_else(PoisonError::into_inner).push(sink.text);
        }
    }

    /// Writes the parts, after all steps have run.
    pub fn finish(self) -> Result<Vec<(LayerId, Bytes)>> {
        let mut texts = std::mem::take(&mut *self.texts.lock().unwrap_or_else(PoisonError::into_inner));
        texts.sort_by_key(|text| text.first);
        let mut parts = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            parts.push((*id, Bytes::from(self.write(*id, &texts)?)));
        }
        Ok(parts)
    }

    fn write(&self, id: LayerId, texts: &[Text]) -> Result<Vec<u8>> {
        let unfinished = || Error::internal(format!("layer {id} was written before its pass was over"));
        let shape = Shape::of(&self.base, id.kind, id.which).ok_or_else(unfinished)?;
        let range = shape.range(id.slice);
        let sections = match id.kind {
            LayerKind::Blocks => {
                let block = u64::from(BLOCK_RECORDS);
                let pieces = range.start / block..range.end.div_ceil(block);
                let (frames, offsets) = gather(texts, pieces, block, |text| (&text.frames, &text.frame_offsets));
                blocks::encode(&frames, &offsets)
            }
            LayerKind::Plain => {
                let (bodies, offsets) = gather(texts, range, 1, |text| (&text.bodies, &text.body_offsets));
                plain::encode(&bodies, &offsets)
            }
            LayerKind::Index => {
                let sections = self.write_index(id, range)?;
                let sections: Vec<&[u8]> = sections.iter().map(Vec::as_slice).collect();
                return Ok(part::write(id.kind.code(), Some(self.base.identity), id.code(), &sections));
            }
            kind => {
                let array = match kind {
                    LayerKind::IsaAttribute => &self.isa[id.which as usize],
                    LayerKind::SaAttribute => &self.sa[id.which as usize],
                    _ => &self.sa_rates[id.which as usize],
                };
                let filling = array.filling(id.slice as usize).ok_or_else(unfinished)?;
                let values = if kind == LayerKind::SaRate { filling.with_gaps() } else { filling.complete() };
                return Ok(write_array(&self.base, id, &values.ok_or_else(unfinished)?));
            }
        };
        let sections = sections.each_ref().map(Vec::as_slice);
        Ok(part::write(id.kind.code(), Some(self.base.identity), id.code(), &sections))
    }

    /// Groups of equal values among the rows of a slice, each with its keys in order.
    fn write_index(&self, id: LayerId, range: Range<u64>) -> Result<[Vec<u8>; 4]> {
        let (base, attribute) = (&*self.base, id.which as usize);
        let unfinished = || Error::internal(format!("layer {id} was written before its pass was over"));
        let start = base.delimiter_column(attribute).start;
        let end = start + range.end as u32;
        let mut row = start + range.start as u32;
        let mut writer = IndexWriter::default();
        let (mut bytes, mut symbols, mut records) = (Vec::new(), Vec::new(), Vec::new());
        while row < end {
            value_at(base, row, &mut bytes, &mut symbols);
            let null = symbols.first().is_some_and(|symbol| base.alphabet.meaning(*symbol) == Meaning::Null);
            let group = base.equal(attribute, &symbols);
            let last = group.end.clamp(row + 1, end);
            if !null {
                records.clear();
                for row in row..last {
                    records.push(self.sa[attribute].get((row - start) as usize).ok_or_else(unfinished)?);
                }
                records.sort_unstable();
                let entry = |record: &u32| match (&base.keys, base.keys.get(*record)) {
                    (KeyIndex::Numbers(_), Key::U64(key)) => key,
                    _ => u64::from(*record),
                };
                writer.push(&bytes, records.iter().map(entry));
            }
            row = last;
        }
        Ok(writer.finish())
    }
}

/// The value that begins at the delimiter of `row`.
fn value_at(base: &Base, mut row: u32, bytes: &mut Vec<u8>, symbols: &mut Vec<u8>) {
    bytes.clear();
    symbols.clear();
    let mut first = 0;
    for _ in 0..base.numbers.longest {
        row = base.psi.next(base.psi.place(row), row);
        let symbol = base.psi.place(row).symbol;
        match base.alphabet.meaning(symbol) {
            Meaning::End | Meaning::Delimiter(_) => return,
            Meaning::Byte(byte) => bytes.push(byte),
            Meaning::First(upper) => first = upper,
            Meaning::Second(lower) => bytes.push(base.alphabet.pair(first, lower)),
            Meaning::Null => {}
        }
        symbols.push(symbol);
    }
}

/// One chain of the pass.
#[derive(Default)]
struct Lane {
    record: u32,
    row: u32,
    place: Place,
    attribute: u32,
    first: Option<u8>,
    null: bool,
    output: Record,
}

impl Lane {
    /// Takes the symbol of the place; false at the end of the record.
    #[inline(always)]
    fn symbol(&mut self, base: &Base, texts: bool) -> bool {
        match base.alphabet.meaning(self.place.symbol) {
            Meaning::Delimiter(attribute) => {
                self.output.end_value(std::mem::take(&mut self.null));
                self.attribute += 1;
                return u32::from(attribute) == self.attribute;
            }
            Meaning::End => {
                self.output.end_value(std::mem::take(&mut self.null));
                return false;
            }
            Meaning::Null => self.null = true,
            _ if !texts => {}
            Meaning::Byte(byte) => self.output.bytes.push(byte),
            Meaning::First(first) => self.first = Some(first),
            Meaning::Second(second) => {
                let first = self.first.take().unwrap_or_default();
                self.output.bytes.push(base.alphabet.pair(first, second));
            }
        }
        true
    }
}
