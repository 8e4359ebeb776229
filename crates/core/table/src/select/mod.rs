//! The rows of decoded columns that meet a condition, as a table of their own: what is sent to who can't read the columns in place.

mod codes;
mod narrow;
mod packed;
mod passing;

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use forebay_types::{Error, Result, RowTest};

pub use self::codes::Coded;
use self::codes::Codes;
pub use self::narrow::Narrow;
pub use self::packed::{pack, unpack};
use self::passing::passing;
use crate::read::{Chunk, Selection, Source, Table, Verified};
use crate::schema::Projection;
use crate::write::{Options, Writer};

/// Rows of a batch of the answer.
const BATCH_ROWS: usize = 8192;
/// Bytes of the rows of one row group of the columns at most, before they are written: who asks says how many columns these are.
const GATHERED_MAX: usize = 64 << 20;
/// Bytes at which a row group of the answer is closed before it has its rows: they are held until then.
const HELD_MAX: u64 = 32 << 20;
/// How often a selection begins anew because a column's values differ more than its first ones: there may be a thousand such columns.
const ANEW_MAX: u32 = 2;

/// Which rows, and how much of them.
#[derive(Clone, Debug)]
pub struct Selecting {
    /// What rows must meet, of the columns in the order given.
    pub tests: Vec<RowTest>,
    /// Only so many rows, the first ones.
    pub limit: Option<u64>,
    /// Bytes that the answer may have.
    pub bytes_max: usize,
}

/// Rows that were selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// A table of them; none where it would have more bytes than it may, or took more memory than is spent on it.
    pub table: Option<Bytes>,
    /// Rows that it has.
    pub rows: u64,
}

/// Selects rows of columns of which each is the first of a table, cut into row groups as the others are; texts and binary behind views
/// come without these, or [a byte each](Coded) where few values differ, and whole numbers [narrow](Narrow), which are fewer bytes. Every
/// byte that is looked at has to verify; where no row of a row group passes, only the columns of the condition are.
/// `Invalid` for a condition that is none on these columns, or compares with what is not of their type; `Corrupt` for columns that
/// can't be what was written, or do not belong together.
pub fn select(columns: &[Bytes], wanted: &Selecting) -> Result<Selected> {
    RowTest::check(&wanted.tests, columns.len())?;
    let mut columns = columns.iter().map(Column::open).collect::<Result<Vec<_>>>()?;
    let mut anew = 0;
    loop {
        if let Some(selected) = selected(&mut columns, wanted)? {
            return Ok(selected);
        }
        // More values differ in one of them than it looked like.
        assert!(columns.iter().any(|column| column.differs), "a column that did not keep to it begins anew");
        anew += 1;
        assert!(anew <= ANEW_MAX, "no column is sent so any more");
        for column in &mut columns {
            column.codes = None;
            column.differs |= anew == ANEW_MAX;
        }
    }
}

/// The same; none where a column's values differ more than the first ones did, which is told to the column.
fn selected(columns: &mut [Column], wanted: &Selecting) -> Result<Option<Selected>> {
    let nothing = || Selected { table: None, rows: 0 };
    let Some(first) = columns.first() else { return Err(Error::invalid("rows of no column at all")) };
    let row_groups = first.table.row_groups();
    // Before anything is read of them: they may not belong together.
    schema(columns)?;
    let mut writer: Option<Writer<Capped>> = None;
    let (mut left, mut rows) = (wanted.limit.unwrap_or(u64::MAX), 0);
    for at in 0..row_groups {
        if left == 0 {
            break;
        }
        let selection = selection(columns, at, &wanted.tests, left)?;
        if selection.is_empty() {
            continue;
        }
        let Some(arrays) = gathered(columns, at, &selection, writer.is_none())? else {
            let differs = columns.iter().any(|column| column.differs && column.codes.is_some());
            return Ok((!differs).then(nothing));
        };
        let schema = schema(columns)?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
        let batch = batch.map_err(|error| Error::corrupt(format!("rows of decoded columns: {error}")))?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(begun(schema, wanted)?),
        };
        writer.push(&batch)?;
        let found = selection.rows().len() as u64;
        debug_assert!(found <= left, "no more rows than are wanted");
        (left, rows) = (left - found, rows + found);
        if writer.sink_mut().is_over {
            return Ok(Some(nothing()));
        }
    }
    // With all values that have come.
    let schema = schema(columns)?;
    let writer = match writer {
        Some(mut writer) => {
            writer.describe(schema)?;
            writer
        }
        None => begun(schema, wanted)?,
    };
    let (sink, written) = writer.finish()?;
    assert_eq!(written.rows, rows, "each row that was found is in the answer");
    Ok(Some(sink.bytes().map_or_else(nothing, |table| Selected { table: Some(table), rows })))
}

fn begun(schema: SchemaRef, wanted: &Selecting) -> Result<Writer<Capped>> {
    let options = Options { row_group_rows: BATCH_ROWS, row_group_bytes: HELD_MAX, ..Options::default() };
    Writer::new(Capped::new(wanted.bytes_max), schema, options)
}

/// Rows of a row group of all columns, as they are sent; with the first ones it is decided how texts are. None where they have more bytes than
/// may be held, or a column's values differ too much.
fn gathered(columns: &mut [Column], at: usize, selection: &Selection, are_first: bool) -> Result<Option<Vec<ArrayRef>>> {
    let (mut arrays, mut bytes) = (Vec::with_capacity(columns.len()), 0usize);
    for column in columns {
        let array = column.gather(at, selection)?;
        if are_first && !column.differs && column.narrow.is_none() {
            column.codes = Codes::of(&array);
        }
        let Some(array) = column.sent(&array)? else { return Ok(None) };
        assert_eq!(array.len(), selection.rows().len(), "each row that was selected is gathered");
        // Of types that are not counted so, the writer counts.
        bytes = bytes.saturating_add(array.to_data().get_slice_memory_size().unwrap_or(0));
        if bytes > GATHERED_MAX {
            return Ok(None);
        }
        arrays.push(array);
    }
    Ok(Some(arrays))
}

/// The rows of a row group that are wanted, `left` of them at most.
fn selection(columns: &[Column], at: usize, tests: &[RowTest], left: u64) -> Result<Selection> {
    let rows = columns[0].table.row_group_rows(at);
    if columns.iter().any(|column| column.table.row_group_rows(at) != rows) {
        return Err(Error::corrupt("decoded columns of one row group have different rows"));
    }
    let selection = match tests.is_empty() {
        true => Selection::of_rows((0..rows as u32).collect())?,
        false => passing(tests, rows, |column| {
            let column = &columns[column as usize];
            Ok((&column.table.schema().leaves()[0], column.array(at)?))
        })?,
    };
    match usize::try_from(left) {
        Ok(left) if left < selection.rows().len() => Selection::of_rows(selection.rows()[..left].to_vec()),
        _ => Ok(selection),
    }
}

/// The columns side by side, named by their places.
fn schema(columns: &[Column]) -> Result<SchemaRef> {
    let field = |(place, column): (usize, &Column)| {
        let field = &column.table.schema().arrow().fields()[0];
        match (&column.narrow, &column.codes) {
            (Some(narrow), _) => narrow.field(&place.to_string(), field.is_nullable()),
            (None, Some(codes)) => Ok(codes.field(&place.to_string(), field.is_nullable())),
            (None, None) => Ok(Field::new(place.to_string(), plain_type(field.data_type()), field.is_nullable())),
        }
    };
    let fields = columns.iter().enumerate().map(field).collect::<Result<Vec<_>>>()?;
    let row_groups = columns.iter().map(|column| column.table.row_groups()).collect::<Vec<_>>();
    match row_groups.windows(2).all(|pair| pair[0] == pair[1]) {
        true => Ok(Arc::new(Schema::new(fields))),
        false => Err(Error::corrupt("decoded columns of one row group are cut differently")),
    }
}

/// A column that stands alone in its table.
struct Column {
    bytes: Bytes,
    table: Table,
    projection: Projection,
    /// How it is sent, where that is not as it is.
    narrow: Option<Narrow>,
    codes: Option<Codes>,
    /// More of its values differ than a byte tells apart.
    differs: bool,
    /// What of it has verified: a condition and the answer look at the same bytes.
    verified: Verified,
}

impl Column {
    fn open(bytes: &Bytes) -> Result<Self> {
        let table = Table::open(bytes)?;
        let (fields, leaves) = (table.schema().arrow().fields(), table.schema().leaves());
        let is_one = fields.len() == 1 && leaves.len() == 1 && !matches!(fields[0].data_type(), DataType::Struct(_));
        if !is_one {
            return Err(Error::corrupt("a decoded column is a table of other columns"));
        }
        let (projection, verified) = (table.schema().projection(), Verified::none_of(&table));
        let narrow = Narrow::of(&table)?;
        Ok(Self { bytes: bytes.clone(), table, projection, narrow, codes: None, differs: false, verified })
    }

    fn chunk(&self, at: usize) -> Result<Chunk> {
        let plan = self.table.plan(at, &self.projection)?;
        let bytes = plan.ranges().into_iter().map(|range| self.bytes.bytes(range)).collect::<Result<Vec<_>>>()?;
        plan.open_once(bytes, &self.verified)
    }

    fn array(&self, at: usize) -> Result<ArrayRef> {
        Ok(Arc::clone(self.chunk(at)?.batch()?.column(0)))
    }

    fn gather(&self, at: usize, selection: &Selection) -> Result<ArrayRef> {
        Ok(Arc::clone(self.chunk(at)?.gather(selection)?.column(0)))
    }

    /// Values as they are sent; none where they can't be sent as those before.
    fn sent(&mut self, array: &ArrayRef) -> Result<Option<ArrayRef>> {
        match (&self.narrow, &mut self.codes) {
            (Some(narrow), _) => narrow.narrow(array).map(Some),
            (None, Some(codes)) => {
                let sent = codes.encode(array)?;
                self.differs = sent.is_none();
                Ok(sent)
            }
            (None, None) => Ok(Some(plain(array))),
        }
    }
}

/// The type of what [`plain`] makes.
fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}

/// The same values, those behind views one after the other: twelve bytes a value less to send.
fn plain(array: &ArrayRef) -> ArrayRef {
    let out: ArrayRef = match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().iter().collect::<StringArray>()),
        DataType::BinaryView => Arc::new(array.as_binary_view().iter().collect::<BinaryArray>()),
        _ => Arc::clone(array),
    };
    let is_as_said = *out.data_type() == plain_type(array.data_type()) && out.len() == array.len();
    assert!(is_as_said, "{} values of {} became {} of {}", array.len(), array.data_type(), out.len(), out.data_type());
    out
}

/// Reads bytes in what is said of a field, which is text.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    text.len().is_multiple_of(2).then(|| (0..text.len()).step_by(2).map(digits).collect())?
}

/// A vector that is given up once it would have too many bytes.
struct Capped {
    bytes: Vec<u8>,
    most: usize,
    is_over: bool,
}

impl Capped {
    fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, is_over: false }
    }

    /// All of them; none where there were too many.
    fn bytes(self) -> Option<Bytes> {
        (!self.is_over).then(|| Bytes::from(self.bytes))
    }
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_over |= bytes.len() > self.most - self.bytes.len();
        if self.is_over {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
        assert!(self.bytes.len() <= self.most, "{} bytes are kept, of {} at most", self.bytes.len(), self.most);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
