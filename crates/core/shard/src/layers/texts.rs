//! Whole records on their way from a building pass into compressed blocks and plain text.

use std::ops::Range;

use forebay_types::Result;

use super::build::LayerBuilder;
use crate::record::blocks::{BLOCK_RECORDS, BlockWriter, RawBlock};
use crate::record::body;
use crate::record::output::Record;

/// What one step made of its records' text.
pub(crate) struct Text {
    pub(crate) first: u32,
    pub(crate) frames: Vec<u8>,
    pub(crate) frame_offsets: Vec<u64>,
    pub(crate) bodies: Vec<u8>,
    pub(crate) body_offsets: Vec<u64>,
}

/// Where the records of a step go, in order.
pub(crate) struct Sink<'b> {
    builder: &'b LayerBuilder,
    pub(crate) texts: bool,
    writer: Option<BlockWriter<'b>>,
    pub(crate) text: Text,
    next: u32,
    raw: RawBlock,
}

impl<'b> Sink<'b> {
    pub(crate) fn new(builder: &'b LayerBuilder, first: u32) -> Result<Self> {
        let writer = builder.packer.as_ref().map(BlockWriter::new).transpose()?;
        let texts = writer.is_some() || !builder.plain.is_empty();
        let text = Text { first, frames: Vec::new(), frame_offsets: Vec::new(), bodies: Vec::new(), body_offsets: Vec::new() };
        Ok(Self { builder, texts, writer, text, next: first, raw: RawBlock::new(&builder.base.codes) })
    }

    pub(crate) fn record(&mut self, record: &Record) -> Result<()> {
        if !self.texts {
            return Ok(());
        }
        let at = u64::from(self.next);
        self.next += 1;
        self.text.body_offsets.push(self.text.bodies.len() as u64);
        if self.builder.plain.iter().any(|range| range.contains(&at)) {
            body::write(record, &mut self.text.bodies);
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let wanted = self.builder.blocks.iter().any(|range| range.contains(&at));
        if wanted {
            self.raw.push(&self.builder.base.codes, &self.builder.numbers, record)?;
        }
        if self.next.is_multiple_of(BLOCK_RECORDS) || self.next == self.builder.base.records() {
            self.text.frame_offsets.push(self.text.frames.len() as u64);
            if wanted {
                writer.compress(&mut self.raw, &mut self.text.frames)?;
            }
        }
        Ok(())
    }
}

/// The pieces `range` of all texts back to back, and where each begins.
pub(crate) fn gather<'t>(
    texts: &'t [Text],
    range: Range<u64>,
    records: u64,
    of: impl Fn(&'t Text) -> (&'t Vec<u8>, &'t Vec<u64>),
) -> (Vec<u8>, Vec<u64>) {
    let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
    for text in texts {
        let first = u64::from(text.first) / records;
        let (source, places) = of(text);
        let count = places.len() as u64 - 1;
        let (from, to) = (range.start.max(first), range.end.min(first + count));
        if from >= to {
            continue;
        }
        let places = &places[(from - first) as usize..=(to - first) as usize];
        let shift = places[0];
        let base = bytes.len() as u64;
        offsets.extend(places[..places.len() - 1].iter().map(|place| place - shift + base));
        bytes.extend_from_slice(&source[shift as usize..places[places.len() - 1] as usize]);
    }
    (bytes, offsets)
}
