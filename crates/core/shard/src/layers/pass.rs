//! The pass over the records' chains that layers are built in.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use forebay_types::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::build::LayerBuilder;
use super::sink::Sink;
use crate::base::Base;
use crate::model::alphabet::Meaning;
use crate::psi::Place;
use crate::record::Record;
use crate::record::blocks::BLOCK_RECORDS;

/// Chains that go on side by side: those of one block.
const CHAINS: usize = BLOCK_RECORDS as usize;

/// One chain of the pass.
#[derive(Default)]
struct Lane {
    record: u32,
    row: u32,
    place: Place,
    attribute: u32,
    /// The row, within its column, where the value that is read begins.
    begun: u32,
    first: Option<u8>,
    null: bool,
    output: Record,
}

impl LayerBuilder {
    /// Walks the records of one step.
    pub fn run(&self, step: Range<u32>) -> Result<()> {
        let mut sink = Sink::new(self, step.start)?;
        let bytes = sink.texts || self.hashes.iter().any(Option::is_some);
        let mut from = step.start;
        let mut lanes: Vec<Lane> = (0..CHAINS).map(|_| Lane::default()).collect();
        while from < step.end {
            let to = step.end.min(from + CHAINS as u32);
            let lanes = &mut lanes[..(to - from) as usize];
            self.walk(from, lanes, bytes);
            for lane in lanes {
                sink.record(&lane.output)?;
            }
            from = to;
        }
        self.keep(sink);
        Ok(())
    }

    /// Calls with the records from `first` on, in order, until it returns false: as many as are read side by side. Says how many there were,
    /// none where it was ended.
    pub(crate) fn read_from(&self, first: u32, mut call: impl FnMut(u32, &Record) -> Result<bool>) -> Result<Option<u32>> {
        debug_assert!(first < self.base.records(), "there is a record to begin with");
        if self.isa.is_empty() {
            return Err(Error::corrupt("a shard of records without attributes can't be read; build it again"));
        }
        let count = (self.base.records() - first).min(CHAINS as u32);
        let mut lanes: Vec<Lane> = (0..count).map(|_| Lane::default()).collect();
        self.walk(first, &mut lanes, true);
        let attributes = self.base.schema.attributes.len();
        for lane in &mut lanes {
            // Damage that checksums did not see could have cut a chain short.
            lane.output.ends.resize(attributes, lane.output.bytes.len() as u32);
            if !call(lane.record, &lane.output)? {
                return Ok(None);
            }
        }
        Ok(Some(count))
    }

    /// Steps the chains of records from `first` on, one a lane, to the ends of the records.
    fn walk(&self, first: u32, lanes: &mut [Lane], bytes: bool) {
        let (base, psi) = (&*self.base, &self.base.psi);
        let start = base.delimiter_column(0).start;
        for (index, lane) in lanes.iter_mut().enumerate() {
            let record = first + index as u32;
            let row = start + base.starts.get(record as usize) as u32;
            self.begin(lane, record, row);
            lane.place = psi.place(lane.row);
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
                self.step(lane, bytes)
            });
        }
    }

    /// Begins a record at its first delimiter.
    fn begin(&self, lane: &mut Lane, record: u32, row: u32) {
        (lane.record, lane.row, lane.attribute, lane.first) = (record, row, 0, None);
        lane.output.clear();
        self.delimiter(lane, 0);
        if self.every_row {
            self.row(record, row);
        }
    }

    /// Takes the symbol that the lane has come to; false at the end of the record.
    #[inline(always)]
    fn step(&self, lane: &mut Lane, bytes: bool) -> bool {
        let inside = match self.base.alphabet.meaning(lane.place.symbol) {
            Meaning::Delimiter(attribute) => {
                self.end_value(lane);
                lane.attribute += 1;
                // What checksums did not see may have more of them than there are attributes, and rows that are in no column.
                let inside = u32::from(attribute) == lane.attribute && (attribute as usize) < self.isa.len();
                if inside {
                    self.delimiter(lane, attribute as usize);
                }
                inside
            }
            Meaning::End => {
                self.end_value(lane);
                false
            }
            meaning => {
                lane.symbol(&self.base, meaning, bytes);
                true
            }
        };
        if inside && self.every_row {
            self.row(lane.record, lane.row);
        }
        inside
    }

    #[inline(always)]
    fn end_value(&self, lane: &mut Lane) {
        lane.output.end_value(std::mem::take(&mut lane.null));
        let attribute = lane.output.len() - 1;
        if let Some(Some(hashes)) = self.hashes.get(attribute)
            && let Some(value) = lane.output.bytes(attribute)
        {
            hashes[lane.begun as usize].store(xxh3_64(value), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn delimiter(&self, lane: &mut Lane, attribute: usize) {
        let index = lane.row.wrapping_sub(self.base.delimiter_column(attribute).start);
        lane.begun = index;
        if self.isa[attribute].any_filling() {
            self.isa[attribute].put(lane.record as usize, index);
        }
        if self.sa[attribute].any_filling() {
            self.sa[attribute].put(index as usize, lane.record);
        }
    }

    /// The pass over a text that is at hand, with the row of each position.
    pub(crate) fn run_from_text(&self, text: &[u8], rows: &[u32]) -> Result<()> {
        assert_eq!(rows.len(), text.len() + 1, "each position has a row, and so has the end");
        let mut sink = Sink::new(self, 0)?;
        let bytes = sink.texts || self.hashes.iter().any(Option::is_some);
        let (mut lane, mut record) = (Lane::default(), None::<u32>);
        let first = self.base.alphabet.delimiter(0);
        for (symbol, row) in text.iter().zip(rows) {
            (lane.place.symbol, lane.row) = (*symbol, *row);
            if *symbol != first {
                self.step(&mut lane, bytes);
                continue;
            }
            if record.is_some() {
                self.end_value(&mut lane);
                sink.record(&lane.output)?;
            }
            let next = record.map_or(0, |record| record + 1);
            self.begin(&mut lane, next, *row);
            record = Some(next);
        }
        if record.is_some() {
            self.end_value(&mut lane);
            sink.record(&lane.output)?;
        }
        assert_eq!(record.map_or(0, |record| record + 1), self.base.records(), "each record was taken");
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
}

impl Lane {
    /// Takes a symbol of a value.
    #[inline(always)]
    fn symbol(&mut self, base: &Base, meaning: Meaning, bytes: bool) {
        match meaning {
            Meaning::Null => self.null = true,
            _ if !bytes => {}
            Meaning::Byte(byte) => self.output.bytes.push(byte),
            Meaning::First(first) => self.first = Some(first),
            Meaning::Second(second) => {
                let first = self.first.take().unwrap_or_default();
                self.output.bytes.push(base.alphabet.pair(first, second));
            }
            Meaning::Delimiter(_) | Meaning::End => {}
        }
    }
}
