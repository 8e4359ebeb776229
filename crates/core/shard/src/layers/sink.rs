//! Whole records on their way from a building pass into compressed blocks and plain text.

use forebay_types::Result;

use super::build::LayerBuilder;
use super::texts::Text;
use crate::record::Record;
use crate::record::blocks::{BLOCK_RECORDS, BlockWriter, RawBlock};
use crate::record::body;

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
