//! Where encoded cells go in a file: aligned, and cut so that no buffer and no row crosses the border of a segment.

use std::io::Write;
use std::ops::Range;

use forebay_types::{Error, Result};

use super::encode::EncodedCell;
use super::rows::RowEnds;
use crate::metadata::{ALIGN, BloomInfo, CellInfo, SEGMENT_BYTES};

/// Bytes that go out, and how many have gone.
pub(super) struct Output<W> {
    pub sink: W,
    pub at: u64,
}

impl<W: Write> Output<W> {
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes).map_err(|error| Error::from(error).context("writing a table"))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Zeros up to byte `to`.
    pub fn pad(&mut self, to: u64) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        while self.at < to {
            let count = (to - self.at).min(ZEROS.len() as u64);
            self.put(&ZEROS[..count as usize])?;
        }
        Ok(())
    }

    /// Bytes up to the next border of segments.
    fn room(&self) -> u64 {
        SEGMENT_BYTES - self.at % SEGMENT_BYTES
    }

    /// Writes a cell: buffers whole within a segment, rows cut between two of them where a segment ends.
    pub fn cell(&mut self, cell: &EncodedCell) -> Result<CellInfo> {
        let mut buffers = Vec::with_capacity(cell.buffers.len() + 1);
        let columns = cell.buffers.len() - usize::from(cell.rows.is_some());
        for buffer in &cell.buffers[..columns] {
            buffers.push(self.buffer(buffer)?);
        }
        if let (Some(ends), Some(rows)) = (&cell.rows, cell.buffers.last()) {
            let mut done = 0;
            while done < rows.len() {
                self.pad(self.at.next_multiple_of(ALIGN))?;
                match whole_rows(ends, done, rows.len(), self.room() as usize) {
                    end if end > done => {
                        buffers.push(self.buffer(&rows[done..end])?);
                        done = end;
                    }
                    _ => self.pad(self.at + self.room())?,
                }
            }
            assert_eq!(done, rows.len(), "each row is in a buffer");
        }
        Ok(CellInfo { buffers, checksum: cell.checksum })
    }

    /// Writes the bloom filter of a column.
    pub fn bloom(&mut self, bytes: &[u8]) -> Result<BloomInfo> {
        Ok(BloomInfo { range: self.buffer(bytes)?, checksum: forebay_types::crc32c(bytes) })
    }

    fn buffer(&mut self, bytes: &[u8]) -> Result<Range<u64>> {
        if bytes.is_empty() {
            return Ok(0..0);
        }
        let length = bytes.len() as u64;
        if length > SEGMENT_BYTES {
            return Err(Error::invalid(format!(
                "a buffer of {length} bytes; it can have {SEGMENT_BYTES}: make row groups smaller"
            )));
        }
        self.pad(self.at.next_multiple_of(ALIGN))?;
        if length > self.room() {
            self.pad(self.at + self.room())?;
        }
        let start = self.at;
        self.put(bytes)?;
        let is_within = start / SEGMENT_BYTES == (self.at - 1) / SEGMENT_BYTES;
        assert!(start.is_multiple_of(ALIGN) && is_within, "bytes {start}..{} are aligned, and within a segment", self.at);
        Ok(start..self.at)
    }
}

/// The byte up to which whole rows fit into `room` bytes, from byte `done` on.
fn whole_rows(ends: &RowEnds, done: usize, all: usize, room: usize) -> usize {
    if all - done <= room {
        return all;
    }
    match ends {
        RowEnds::Stride(stride) => done + room / stride * stride,
        RowEnds::Offsets(offsets) => {
            let next = offsets.partition_point(|&offset| offset as usize <= done + room);
            offsets[next - 1] as usize
        }
    }
}
