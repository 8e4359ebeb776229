//! From what the pass has collected to the parts of layers.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use forebay_types::{Error, Result};

use super::build::LayerBuilder;
use super::id::{LayerId, LayerKind};
use super::shape::Shape;
use super::texts::{Text, gather};
use super::write_array;
use crate::base::Base;
use crate::interval::nulls;
use crate::inverted::index::IndexWriter;
use crate::inverted::postings::PostingsWriter;
use crate::keys::KeyIndex;
use crate::model::alphabet::Meaning;
use crate::model::key::Key;
use crate::part;
use crate::record::blocks::{self, BLOCK_RECORDS};
use crate::record::plain;

fn unfinished(id: LayerId) -> Error {
    Error::internal(format!("layer {id} was written before its pass was over"))
}

/// The rows of one value in a slice of a layer.
struct Group<'g> {
    /// The first one.
    row: u32,
    /// The value's hash; none for null.
    hash: Option<u64>,
    /// The records of the rows, in order.
    records: &'g [u32],
}

impl LayerBuilder {
    /// Writes the parts, after all steps have run.
    pub fn finish(self) -> Result<Vec<(LayerId, Bytes)>> {
        let mut texts = std::mem::take(&mut *self.texts.lock().unwrap_or_else(PoisonError::into_inner));
        texts.sort_by_key(|text| text.first);
        self.ids.iter().map(|id| Ok((*id, Bytes::from(self.write(*id, &texts)?)))).collect()
    }

    fn write(&self, id: LayerId, texts: &[Text]) -> Result<Vec<u8>> {
        let shape = Shape::of(&self.base, id.kind, id.which).ok_or_else(|| unfinished(id))?;
        let range = shape.range(id.slice);
        let sections = match id.kind {
            LayerKind::Blocks => {
                let block = u64::from(BLOCK_RECORDS);
                let pieces = range.start / block..range.end.div_ceil(block);
                let (frames, offsets) = gather(texts, pieces, block, |text| (&text.frames, &text.frame_offsets));
                Vec::from(blocks::encode(&frames, &offsets))
            }
            LayerKind::Plain => {
                let (bodies, offsets) = gather(texts, range, 1, |text| (&text.bodies, &text.body_offsets));
                Vec::from(plain::encode(&bodies, &offsets))
            }
            LayerKind::Index => self.write_index(id, range)?,
            LayerKind::Postings => {
                let mut writer = PostingsWriter::default();
                let bits = self.base.record_bits();
                self.for_each_group(id, range, |group| writer.push(group.hash, group.records, bits))?;
                Vec::from(writer.finish())
            }
            kind => {
                let array = match kind {
                    LayerKind::IsaAttribute => &self.isa[id.which as usize],
                    LayerKind::SaAttribute => &self.sa[id.which as usize],
                    _ => &self.sa_rates[id.which as usize],
                };
                let filling = array.filling(id.slice as usize).ok_or_else(|| unfinished(id))?;
                let values = if kind == LayerKind::SaRate { filling.with_gaps() } else { filling.complete() };
                return Ok(write_array(&self.base, id, &values.ok_or_else(|| unfinished(id))?));
            }
        };
        let sections: Vec<&[u8]> = sections.iter().map(Vec::as_slice).collect();
        Ok(part::write(id.kind.code(), Some(self.base.identity), id.code(), &sections))
    }

    fn write_index(&self, id: LayerId, range: Range<u64>) -> Result<Vec<Vec<u8>>> {
        let (base, mut writer, mut bytes) = (&*self.base, IndexWriter::default(), Vec::new());
        let entry = |record: &u32| match (&base.keys, base.keys.get(*record)) {
            (KeyIndex::Numbers(_), Key::U64(key)) => key,
            _ => u64::from(*record),
        };
        self.for_each_group(id, range, |group| {
            if group.hash.is_some() {
                value_at(base, group.row, &mut bytes);
                writer.push(&bytes, group.records.iter().map(entry));
            }
        })?;
        Ok(Vec::from(writer.finish()))
    }

    /// Calls for each value among the rows of a slice, in order.
    fn for_each_group(&self, id: LayerId, range: Range<u64>, mut call: impl FnMut(Group<'_>)) -> Result<()> {
        let (base, attribute) = (&*self.base, id.which as usize);
        let hashes = self.hashes[attribute].as_ref().ok_or_else(|| unfinished(id))?;
        let hash = |row: u64| hashes[row as usize].load(Ordering::Relaxed);
        let start = base.delimiter_column(attribute).start;
        let nulls = u64::from(nulls(base, attribute) - start);
        let (mut one, mut other, mut records) = (Vec::new(), Vec::new(), Vec::new());
        let mut row = range.start;
        while row < range.end {
            let null = row >= nulls;
            let mut end = row + 1;
            let most = if null { range.end } else { range.end.min(nulls) };
            while end < most && (null || hash(end) == hash(row)) {
                end += 1;
            }
            if !null && end > row + 1 {
                value_at(base, start + row as u32, &mut one);
                value_at(base, start + end as u32 - 1, &mut other);
                // Values stand in order, so those between two equal ones are equal; or two neighbours have one hash.
                while one != other {
                    end -= 1;
                    value_at(base, start + end as u32 - 1, &mut other);
                }
            }
            records.clear();
            for row in row..end {
                records.push(self.sa[attribute].get(row as usize).ok_or_else(|| unfinished(id))?);
            }
            records.sort_unstable();
            let hash = (!null).then(|| hash(row));
            call(Group { row: start + row as u32, hash, records: &records });
            row = end;
        }
        Ok(())
    }
}

/// The value that begins at the delimiter of `row`.
fn value_at(base: &Base, mut row: u32, bytes: &mut Vec<u8>) {
    bytes.clear();
    let mut first = 0;
    for _ in 0..base.numbers.longest {
        row = base.psi.next(base.psi.place(row), row);
        match base.alphabet.meaning(base.psi.place(row).symbol) {
            Meaning::End | Meaning::Delimiter(_) => return,
            Meaning::Byte(byte) => bytes.push(byte),
            Meaning::First(upper) => first = upper,
            Meaning::Second(lower) => bytes.push(base.alphabet.pair(first, lower)),
            Meaning::Null => {}
        }
    }
}
