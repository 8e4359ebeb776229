//! What is known of a table apart from its data: one block of bytes, with the proof on reading it that every range it names can be, and the
//! footer that says where it is.

mod bloom;
mod footer;
mod statistics;

use std::ops::Range;
use std::sync::Arc;

use forebay_types::{Error, Result};

use crate::bloom::{BLOCK_BYTES, BLOCKS_MAX};
use crate::fields::{Decoder, Encoder};
use crate::layout::{Group, Layout};
use crate::schema::{TableSchema, decode_schema, encode_schema};
use footer::{HEADER_BYTES, VERSION_OF_BLOOMS, VERSION_OF_NESTED};

pub use bloom::BloomInfo;
pub use footer::{FOOTER_BYTES, Footer};
pub(crate) use footer::{header, version_of};
pub(crate) use statistics::{BOUND_BYTES_MAX, Bound, LeafStatistics};

/// Most rows in a row group.
pub(crate) const ROWS_MAX: usize = 1 << 20;
/// What every buffer begins at a multiple of.
pub(crate) const ALIGN: u64 = 64;
/// Bytes of a segment: no buffer crosses a multiple of this in a file, so that each lies in one extent of a tier.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// Where a cell's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellInfo {
    /// The buffers' ranges in the file; an empty one is not there.
    pub(crate) buffers: Vec<Range<u64>>,
    /// CRC-32C over the buffers, in order.
    pub(crate) checksum: u32,
}

impl CellInfo {
    /// The ranges of the file that hold the cell, in the order in which they are to be given.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.buffers.iter().filter(|range| !range.is_empty()).cloned()
    }

    /// Bytes of the cell, padding between its buffers not counted.
    pub fn bytes(&self) -> u64 {
        self.buffers.iter().map(|range| range.end - range.start).sum()
    }
}

/// One row group: its cells in the order of the column groups, its statistics and bloom filters in the order of the leaves.
#[derive(Clone, Debug)]
pub(crate) struct RowGroupInfo {
    pub rows: usize,
    pub cells: Vec<CellInfo>,
    pub leaves: Vec<LeafStatistics>,
    /// None at all in a table of a version without them.
    pub blooms: Vec<Option<BloomInfo>>,
}

/// All of a table's metadata.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub schema: TableSchema,
    pub groups: Vec<Group>,
    pub row_groups: Vec<RowGroupInfo>,
}

impl Block {
    /// The bytes of it, for a table of that version.
    pub fn encode(&self, version: u32) -> Result<Vec<u8>> {
        let mut out = Encoder::default();
        encode_schema(self.schema.arrow(), &mut out)?;
        out.u32(self.groups.len() as u32);
        for group in &self.groups {
            out.u8(match group.layout() {
                Layout::Column => 0,
                Layout::Aligned => 1,
                Layout::Packed => 2,
            });
            out.u32(group.leaves().len() as u32);
            group.leaves().iter().for_each(|&leaf| out.u32(leaf as u32));
        }
        out.u32(self.row_groups.len() as u32);
        for row_group in &self.row_groups {
            let (cells, leaves) = (row_group.cells.len(), row_group.leaves.len());
            assert_eq!((cells, leaves), (self.groups.len(), self.schema.leaves().len()), "a row group has all cells and leaves");
            let has_blooms = version < VERSION_OF_BLOOMS || row_group.blooms.len() == leaves;
            assert!(has_blooms, "a table of version {version} says of each leaf whether it has a bloom filter");
            out.u32(row_group.rows as u32);
            for cell in &row_group.cells {
                out.u32(cell.checksum);
                out.u16(cell.buffers.len() as u16);
                for range in &cell.buffers {
                    out.u64(range.start);
                    out.u64(range.end - range.start);
                }
            }
            row_group.leaves.iter().for_each(|leaf| leaf.encode(&mut out));
            if version >= VERSION_OF_BLOOMS {
                row_group.blooms.iter().for_each(|bloom| BloomInfo::encode(bloom.as_ref(), &mut out));
            }
        }
        Ok(out.0)
    }

    /// Reads a block and checks that what it says can be: ranges lie in front of the metadata, begin where buffers may,
    /// cross no border of segments and are as long as their rows need.
    pub fn decode(footer: &Footer, bytes: &[u8]) -> Result<Self> {
        let length = footer.metadata.end - footer.metadata.start;
        if bytes.len() as u64 != length || forebay_types::crc32c(bytes) != footer.checksum {
            return Err(Error::corrupt("the metadata of the table does not verify; copy the file again"));
        }
        Self::decode_verified(footer, bytes)
    }

    pub fn decode_verified(footer: &Footer, bytes: &[u8]) -> Result<Self> {
        let mut input = Decoder::new(bytes);
        let arrow = decode_schema(&mut input)?;
        let schema = TableSchema::new(Arc::new(arrow)).map_err(|error| input.corrupt(error.message()))?;
        if schema.has_nested() && footer.version < VERSION_OF_NESTED {
            return Err(input.corrupt("a table of its version has no such columns"));
        }
        let groups = decode_groups(&mut input, &schema)?;
        let count = input.count(4)?;
        let mut row_groups = Vec::with_capacity(count);
        for index in 0..count {
            let decoded = decode_row_group(&mut input, &schema, &groups, footer);
            row_groups.push(decoded.map_err(|error| error.context(format_args!("row group {index}")))?);
        }
        input.end()?;
        Ok(Self { schema, groups, row_groups })
    }
}

fn decode_groups(input: &mut Decoder<'_>, schema: &TableSchema) -> Result<Vec<Group>> {
    let mut seen = vec![false; schema.leaves().len()];
    let count = input.count(9)?;
    let mut groups = Vec::with_capacity(count);
    for _ in 0..count {
        let layout = match input.u8()? {
            0 => Layout::Column,
            1 => Layout::Aligned,
            2 => Layout::Packed,
            _ => return Err(input.corrupt("unknown layout of a column group")),
        };
        let members = input.count(4)?;
        let leaves = (0..members).map(|_| Ok(input.u32()? as usize)).collect::<Result<Vec<_>>>()?;
        for &leaf in &leaves {
            if leaf >= seen.len() || std::mem::replace(&mut seen[leaf], true) {
                return Err(input.corrupt("a column group names a column that is not there, or is in another one"));
            }
        }
        if leaves.is_empty() || (leaves.len() == 1) != (layout == Layout::Column) {
            return Err(input.corrupt("a column group's layout does not go with its number of columns"));
        }
        groups.push(Group::new(schema, layout, leaves).map_err(|error| input.corrupt(error.message()))?);
    }
    if seen.contains(&false) { Err(input.corrupt("a column is in no column group")) } else { Ok(groups) }
}

fn decode_row_group(input: &mut Decoder<'_>, schema: &TableSchema, groups: &[Group], footer: &Footer) -> Result<RowGroupInfo> {
    let end = footer.metadata.start;
    let rows = input.u32()? as usize;
    if rows == 0 || rows > ROWS_MAX {
        return Err(input.corrupt("the number of rows is out of range"));
    }
    let mut cells = Vec::with_capacity(groups.len());
    for group in groups {
        let cell = decode_cell(input, end)?;
        check_cell(&cell, group, schema, rows).map_err(|what| {
            let column = schema.leaves()[group.leaves()[0]].path();
            input.corrupt(&format!("cell of column `{column}`: {what}"))
        })?;
        cells.push(cell);
    }
    let leaves = schema.leaves().iter().map(|leaf| LeafStatistics::decode(input, leaf.kind(), rows)).collect::<Result<_>>()?;
    let blooms = match footer.version {
        VERSION_OF_BLOOMS.. => schema.leaves().iter().map(|_| decode_bloom(input, end)).collect::<Result<Vec<_>>>()?,
        _ => Vec::new(),
    };
    Ok(RowGroupInfo { rows, cells, leaves, blooms })
}

fn decode_bloom(input: &mut Decoder<'_>, end: u64) -> Result<Option<BloomInfo>> {
    let blocks = match input.u32()? as usize {
        0 => return Ok(None),
        blocks @ ..=BLOCKS_MAX => blocks,
        _ => return Err(input.corrupt("a bloom filter is too large")),
    };
    let at = input.u64()?;
    let range = decode_range(input, at, (blocks * BLOCK_BYTES) as u64, end)?;
    Ok(Some(BloomInfo { range, checksum: input.u32()? }))
}

fn decode_cell(input: &mut Decoder<'_>, end: u64) -> Result<CellInfo> {
    let checksum = input.u32()?;
    let count = input.u16()?;
    let mut buffers = Vec::new();
    for _ in 0..count {
        let (at, bytes) = (input.u64()?, input.u64()?);
        buffers.push(decode_range(input, at, bytes, end)?);
    }
    Ok(CellInfo { buffers, checksum })
}

/// The range of a buffer, if it can be there: in front of the metadata, aligned, within a segment. One of no bytes is nowhere.
fn decode_range(input: &Decoder<'_>, at: u64, bytes: u64, end: u64) -> Result<Range<u64>> {
    if bytes == 0 {
        return Ok(0..0);
    }
    let inside = at >= HEADER_BYTES && bytes <= SEGMENT_BYTES && at.checked_add(bytes).is_some_and(|last| last <= end);
    let crosses = inside && at / SEGMENT_BYTES != (at + bytes - 1) / SEGMENT_BYTES;
    if !inside || crosses || !at.is_multiple_of(ALIGN) {
        return Err(input.corrupt(&format!("a buffer can't have {bytes} bytes at byte {at}")));
    }
    Ok(at..at + bytes)
}

/// Whether the buffers are as many and as long as the group's layout needs for that many rows.
fn check_cell(cell: &CellInfo, group: &Group, schema: &TableSchema, rows: usize) -> Result<(), &'static str> {
    let bytes = cell.buffers.iter().map(|range| (range.end - range.start) as usize).collect::<Vec<_>>();
    if let Some(layout) = group.rows() {
        let Some((&offsets, parts)) = bytes.split_first() else { return Err("it has no buffers") };
        if parts.contains(&0) {
            return Err("a part of its rows is empty");
        }
        let fits = match layout.stride() {
            Some(stride) => {
                let whole = parts.iter().all(|bytes| bytes.checked_rem(stride).unwrap_or(*bytes) == 0);
                offsets == 0 && whole && parts.iter().sum::<usize>() == rows * stride
            }
            None => offsets == (rows + 1) * 4 && parts.iter().sum::<usize>() <= u32::MAX as usize,
        };
        return if fits { Ok(()) } else { Err("its rows have the wrong number of bytes") };
    }
    if bytes.len() != group.slots(schema) {
        return Err("it has the wrong number of buffers");
    }
    let fits = schema.leaves()[group.leaves()[0]].kind().fits(&bytes, rows);
    if fits { Ok(()) } else { Err("a buffer has the wrong number of bytes") }
}
