//! What a message's metadata says of its body, checked against the body and the schema. A pure decision: nothing is decoded.

use std::collections::VecDeque;

use datafusion::arrow::datatypes::{DataType, UnionMode};
use datafusion::arrow::ipc::{Buffer, CompressionType, FieldNode, MetadataVersion, RecordBatch};

use crate::paths::guard::WITHOUT_BYTES_MAX;
use crate::paths::guard::fault::{Fault, Result, damage};

/// Before a compressed buffer: how long it is decoded, or [`AS_IT_IS`].
pub(super) const LENGTH_BYTES: usize = 8;
/// The length of a buffer that compression would have made longer.
pub(super) const AS_IT_IS: i64 = -1;

/// Bytes that a byte of LZ4 can become: one of a length stands for as many.
const LZ4_RATIO: u64 = 255;
/// Bytes that a byte of Zstandard can become: a block of four repeats its last byte 128 KiB long.
const ZSTD_RATIO: u64 = 32 << 10;

/// A buffer of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) offset: usize,
    pub(super) length: usize,
    /// Bytes that it has decoded.
    pub(super) decoded: u64,
    /// Whether it belongs to a column that is read.
    pub(super) wanted: bool,
}

/// What a message's metadata is checked against.
pub(super) struct Against<'a> {
    pub(super) version: MetadataVersion,
    pub(super) body: &'a [u8],
    pub(super) decoded_bytes_max: u64,
}

/// The buffers of a message with these columns, of which some are read.
pub(super) fn pieces<'a>(
    batch: &RecordBatch<'_>,
    columns: impl Iterator<Item = (&'a DataType, bool)>,
    against: &Against<'_>,
) -> Result<Vec<Piece>> {
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else { return damage("a message lacks its buffers") };
    let ratio = match batch.compression().map(|compression| compression.codec()) {
        None => None,
        Some(CompressionType::LZ4_FRAME) => Some(LZ4_RATIO),
        Some(CompressionType::ZSTD) => Some(ZSTD_RATIO),
        Some(other) => return Err(Fault::Unsupported(format!("it is compressed with {other:?}"))),
    };
    let mut walk = Walk {
        nodes: nodes.iter(),
        buffers: buffers.iter(),
        variadic: batch.variadicBufferCounts().into_iter().flatten().collect(),
        ratio,
        unions_have_validity: against.version < MetadataVersion::V5,
        body: against.body,
        pieces: Vec::with_capacity(buffers.len()),
        without_bytes: 0,
        wanted: false,
    };
    let rows = u64::try_from(batch.length()).map_err(|_| Fault::Damage("a message has less than no rows".to_string()))?;
    let mut any = false;
    for (kind, wanted) in columns {
        (any, walk.wanted) = (true, wanted);
        if walk.column(kind)? != rows {
            return damage("a message's columns differ in length");
        }
    }
    if !any {
        walk.without_bytes = rows;
    }
    walk.finished(against.decoded_bytes_max)
}

/// The way through a message's columns, which gives their nodes and buffers in order.
struct Walk<'a, N, B> {
    nodes: N,
    buffers: B,
    variadic: VecDeque<i64>,
    /// Bytes that a compressed byte can become; none where buffers are not compressed.
    ratio: Option<u64>,
    unions_have_validity: bool,
    body: &'a [u8],
    pieces: Vec<Piece>,
    /// The longest column that no buffer says the length of.
    without_bytes: u64,
    wanted: bool,
}

impl<'a, N: Iterator<Item = &'a FieldNode>, B: Iterator<Item = &'a Buffer>> Walk<'_, N, B> {
    /// The length of a column, which its buffers and those below are long enough for.
    fn column(&mut self, kind: &DataType) -> Result<u64> {
        let Some(node) = self.nodes.next() else { return damage("a message has too few columns") };
        let Ok(rows) = u64::try_from(node.length()) else { return damage("a column has less than no rows") };
        let nulls = node.null_count() > 0;
        match kind {
            DataType::Null => self.without_bytes = self.without_bytes.max(rows),
            DataType::RunEndEncoded(ends, values) => {
                self.without_bytes = self.without_bytes.max(rows);
                self.column(ends.data_type())?;
                self.column(values.data_type())?;
            }
            DataType::Union(fields, mode) => {
                if self.unions_have_validity {
                    self.buffer()?;
                }
                self.holds(rows, 8)?;
                if *mode == UnionMode::Dense {
                    self.holds(rows, 32)?;
                }
                for (_, field) in fields.iter() {
                    let below = self.column(field.data_type())?;
                    enough(*mode == UnionMode::Dense || below >= rows)?;
                }
            }
            _ => {
                self.holds(if nulls { rows } else { 0 }, 1)?;
                self.valued(kind, rows)?;
            }
        }
        Ok(rows)
    }

    /// What follows the validity of a column that has one.
    fn valued(&mut self, kind: &DataType, rows: u64) -> Result<()> {
        let offsets = if rows == 0 { 0 } else { rows.saturating_add(1) };
        match kind {
            DataType::Boolean => self.holds(rows, 1),
            DataType::Utf8 | DataType::Binary => self.holds(offsets, 32).and_then(|()| self.buffer().map(drop)),
            DataType::LargeUtf8 | DataType::LargeBinary => self.holds(offsets, 64).and_then(|()| self.buffer().map(drop)),
            DataType::Utf8View | DataType::BinaryView => {
                let Some(count) = self.variadic.pop_front() else { return damage("a message says too little of its views") };
                self.holds(rows, 128)?;
                (0..count).try_for_each(|_| self.buffer().map(drop))
            }
            DataType::FixedSizeBinary(width) => self.fixed(rows, *width, 8),
            DataType::List(below) | DataType::Map(below, _) => {
                self.holds(offsets, 32)?;
                self.column(below.data_type()).map(drop)
            }
            DataType::LargeList(below) => {
                self.holds(offsets, 64)?;
                self.column(below.data_type()).map(drop)
            }
            DataType::ListView(below) => {
                self.holds(rows, 32)?;
                self.holds(rows, 32)?;
                self.column(below.data_type()).map(drop)
            }
            DataType::LargeListView(below) => {
                self.holds(rows, 64)?;
                self.holds(rows, 64)?;
                self.column(below.data_type()).map(drop)
            }
            DataType::FixedSizeList(below, width) => {
                let Ok(width) = u64::try_from(*width) else { return damage("a list has less than no values") };
                if width == 0 {
                    self.without_bytes = self.without_bytes.max(rows);
                }
                let below = self.column(below.data_type())?;
                enough(rows.checked_mul(width).is_some_and(|values| below >= values))
            }
            DataType::Struct(fields) => {
                if fields.is_empty() {
                    self.without_bytes = self.without_bytes.max(rows);
                }
                fields.iter().try_for_each(|field| enough(self.column(field.data_type())? >= rows))
            }
            DataType::Dictionary(keys, _) => self.fixed(rows, keys.primitive_width().map_or(-1, |width| width as i32), 8),
            _ => self.fixed(rows, kind.primitive_width().map_or(-1, |width| width as i32), 8),
        }
    }

    fn fixed(&mut self, rows: u64, width: i32, bits: u64) -> Result<()> {
        let Ok(width) = u64::try_from(width) else { return damage("a column has values of no known width") };
        if width == 0 {
            self.without_bytes = self.without_bytes.max(rows);
        }
        self.holds(rows, width * bits)
    }

    /// Takes the next buffer, which has so many values of so many bits.
    fn holds(&mut self, values: u64, bits: u64) -> Result<()> {
        let bytes = self.buffer()?;
        enough(values.checked_mul(bits).is_some_and(|needed| needed.div_ceil(8) <= bytes))
    }

    /// The decoded length of the next buffer.
    fn buffer(&mut self) -> Result<u64> {
        let Some(buffer) = self.buffers.next() else { return damage("a message has too few buffers") };
        let span = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = span.and_then(|(offset, length)| Some((offset, length, self.body.get(offset..offset.checked_add(length)?)?)));
        let Some((offset, length, bytes)) = bytes else { return damage("a message names buffers beyond its end") };
        let decoded = match self.ratio {
            Some(ratio) if length > 0 => self::decoded(bytes, ratio)?,
            _ => length as u64,
        };
        self.pieces.push(Piece { offset, length, decoded, wanted: self.wanted });
        Ok(decoded)
    }

    fn finished(self, decoded_bytes_max: u64) -> Result<Vec<Piece>> {
        if !self.variadic.is_empty() {
            return damage("a message says too much of its views");
        }
        let sum = |wanted: bool| {
            self.pieces.iter().filter(|piece| piece.wanted || !wanted).fold(0u64, |sum, piece| sum.saturating_add(piece.decoded))
        };
        // What is not compressed is read in place, but several buffers can share bytes, and may have to be copied.
        let most = if self.ratio.is_some() { decoded_bytes_max } else { decoded_bytes_max.max(self.body.len() as u64) };
        let bytes = sum(true);
        if bytes > most {
            return Err(Fault::TooLarge { bytes, most });
        }
        // A row takes a bit or more wherever some column takes any.
        if self.without_bytes > WITHOUT_BYTES_MAX.max(sum(false).min(decoded_bytes_max).saturating_mul(8)) {
            return damage(format!("{} values stand in it without any bytes", self.without_bytes));
        }
        Ok(self.pieces)
    }
}

fn enough(is: bool) -> Result<()> {
    if is { Ok(()) } else { damage("a message has more rows than bytes for them") }
}

/// The length that a compressed buffer says it has decoded, if it can have that.
fn decoded(buffer: &[u8], ratio: u64) -> Result<u64> {
    let Some((length, compressed)) = buffer.split_first_chunk::<LENGTH_BYTES>() else {
        return damage("a compressed buffer lacks its length");
    };
    let compressed = compressed.len() as u64;
    match i64::from_le_bytes(*length) {
        AS_IT_IS => Ok(compressed),
        length if u64::try_from(length).is_ok_and(|length| length <= compressed.saturating_mul(ratio)) => Ok(length as u64),
        length => damage(format!("a compressed buffer of {compressed} bytes says that it takes {length} decoded")),
    }
}
