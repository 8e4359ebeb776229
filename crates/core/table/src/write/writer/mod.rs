//! The writer of a whole table: gathers rows, closes row groups, and ends the file with what makes it one.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use forebay_types::{Error, Result};

use super::blooms::Blooms;
use super::cut::Load;
use super::encode::{Encoder, RowGroup, Shape, Spares};
use super::place::Output;
use crate::layout::Grouping;
use crate::metadata::{ALIGN, Block, Footer, ROWS_MAX, RowGroupInfo, header, version_of};
use crate::schema::TableSchema;

/// How a table is cut.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which columns stand together; each on its own unless said otherwise.
    pub grouping: Grouping,
    /// Rows in a row group, 65,536 unless said otherwise; at most 1,048,576.
    pub row_group_rows: usize,
    /// Bytes at which a row group is closed before it has its rows, 256 MiB unless said otherwise: the writer's memory.
    pub row_group_bytes: u64,
    /// Which columns have bloom filters; none unless said otherwise.
    pub blooms: Blooms,
}

impl Default for Options {
    fn default() -> Self {
        Self { grouping: Grouping::default(), row_group_rows: 1 << 16, row_group_bytes: 256 << 20, blooms: Blooms::None }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Rows of the table.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a table to `sink` from front to back, holding at most one row group.
///
/// A file that is not [finished](Writer::finish) is no table: its last bytes say so.
pub struct Writer<W> {
    encoder: Encoder,
    options: Options,
    output: Output<W>,
    row_groups: Vec<RowGroupInfo>,
    pending: Vec<Vec<ArrayRef>>,
    pending_rows: usize,
    load: Load,
    spares: Spares,
}

impl<W: Write> Writer<W> {
    /// Begins a table.
    /// `Invalid` for columns that a table can't hold or options out of range, `NotFound` for a group's column that is not
    /// there; the sink's errors.
    pub fn new(sink: W, schema: SchemaRef, options: Options) -> Result<Self> {
        if !(1..=ROWS_MAX).contains(&options.row_group_rows) || !(1..=1 << 30).contains(&options.row_group_bytes) {
            return Err(Error::invalid(format!("row groups have 1 to {ROWS_MAX} rows and up to 1 GiB; set them so")));
        }
        let schema = TableSchema::new(schema)?;
        let groups = options.grouping.resolve(&schema)?;
        let blooms = options.blooms.resolve(&schema)?;
        let load = Load::none(&schema);
        let mut output = Output { sink, at: 0 };
        let shape = Shape { schema, groups, blooms };
        output.put(&header(version_of(&shape.schema, shape.has_blooms())))?;
        let encoder = Encoder { shape: Arc::new(shape) };
        Ok(Self {
            encoder,
            options,
            output,
            row_groups: Vec::new(),
            pending: Vec::new(),
            pending_rows: 0,
            load,
            spares: Spares::default(),
        })
    }

    /// What encodes row groups for [`Writer::append`], in threads of the caller.
    pub fn encoder(&self) -> Encoder {
        self.encoder.clone()
    }

    /// Where the bytes go, to take what has come so far.
    pub fn sink_mut(&mut self) -> &mut W {
        &mut self.output.sink
    }

    /// Adds rows; whole row groups go out.
    /// `Invalid` if the batch is not of the table's schema or a value does not fit into a segment; the sink's errors.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let leaves = self.encoder.shape.schema.flatten(batch)?;
        let mut first = 0;
        while first < batch.num_rows() {
            assert!(self.pending_rows < self.options.row_group_rows, "{} rows were to go out as a row group", self.pending_rows);
            let room = self.options.row_group_rows - self.pending_rows;
            let mut rows = room.min(batch.num_rows() - first);
            loop {
                let piece = leaves.iter().map(|array| array.slice(first, rows)).collect::<Vec<_>>();
                let load = self.load.with(&self.encoder.shape.schema, &piece);
                if load.fits(self.options.row_group_bytes) || (rows == 1 && self.pending_rows == 0) {
                    self.check_value(&load)?;
                    self.pending.push(piece);
                    self.pending_rows += rows;
                    self.load = load;
                    break;
                }
                // Too much: half of it, or what is there goes out first.
                if rows == 1 {
                    self.flush()?;
                } else {
                    rows = rows.div_ceil(2);
                }
            }
            first += rows;
            if self.pending_rows == self.options.row_group_rows {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Says of the columns what was not known when the table was begun: `schema` has the same ones.
    ///
    /// # Errors
    /// Those of [`Writer::new`].
    pub(crate) fn describe(&mut self, schema: SchemaRef) -> Result<()> {
        let (schema, shape) = (TableSchema::new(schema)?, &self.encoder.shape);
        let types = |schema: &TableSchema| schema.leaves().iter().map(|leaf| leaf.data_type().clone()).collect::<Vec<_>>();
        assert_eq!(types(&schema), types(&shape.schema), "what has come is of these columns");
        let shape = Shape { schema, groups: shape.groups.clone(), blooms: shape.blooms.clone() };
        self.encoder = Encoder { shape: Arc::new(shape) };
        Ok(())
    }

    fn check_value(&self, load: &Load) -> Result<()> {
        let Some((leaf, bytes)) = load.too_large() else { return Ok(()) };
        let path = self.encoder.shape.schema.leaves()[leaf].path();
        Err(Error::invalid(format!("column `{path}`: a value of {bytes} bytes; a table's values have at most 64 MiB")))
    }

    fn flush(&mut self) -> Result<()> {
        if self.pending_rows == 0 {
            return Ok(());
        }
        // Also when they can't be encoded: what comes after is counted anew.
        let (pending, rows) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.pending_rows));
        self.load = Load::none(&self.encoder.shape.schema);
        let columns = |piece: &Vec<ArrayRef>| piece.first().map_or(0, |array| array.len());
        let pieces: usize = pending.iter().map(columns).sum();
        assert!(pieces == rows || self.encoder.shape.schema.leaves().is_empty(), "{rows} rows are counted, {pieces} have come");
        let encoded = self.encoder.encode_leaves(rows, &pending, &mut self.spares)?;
        self.place(&encoded)?;
        self.spares.reclaim(encoded);
        Ok(())
    }

    /// Puts a row group that was encoded elsewhere after all that came before.
    ///
    /// # Errors
    /// The sink's errors.
    pub fn append(&mut self, row_group: &RowGroup) -> Result<()> {
        self.flush()?;
        self.place(row_group)
    }

    fn place(&mut self, row_group: &RowGroup) -> Result<()> {
        let Shape { schema, groups, .. } = &*self.encoder.shape;
        let (cells, leaves) = (row_group.cells.len(), row_group.leaves.len());
        assert!(cells == groups.len() && leaves == schema.leaves().len(), "{cells} cells of {leaves} leaves are of this table");
        let cells = row_group.cells.iter().map(|cell| self.output.cell(cell)).collect::<Result<_>>()?;
        let blooms = row_group.blooms.iter().map(|bloom| bloom.as_ref().map(|bytes| self.output.bloom(bytes)).transpose());
        let blooms = blooms.collect::<Result<_>>()?;
        self.row_groups.push(RowGroupInfo { rows: row_group.rows, cells, leaves: row_group.leaves.clone(), blooms });
        Ok(())
    }

    /// Writes what is left, the metadata and the footer, and gives the sink back.
    ///
    /// # Errors
    /// Those of [`Writer::push`].
    pub fn finish(mut self) -> Result<(W, Summary)> {
        self.flush()?;
        let rows = self.row_groups.iter().map(|row_group| row_group.rows as u64).sum();
        self.output.pad(self.output.at.next_multiple_of(ALIGN))?;
        let shape = &self.encoder.shape;
        let version = version_of(&shape.schema, shape.has_blooms());
        let block = Block { schema: shape.schema.clone(), groups: shape.groups.clone(), row_groups: self.row_groups };
        let block = block.encode(version)?;
        let metadata = self.output.at..self.output.at + block.len() as u64;
        self.output.put(&block)?;
        self.output.put(&Footer { metadata, checksum: forebay_types::crc32c(&block), version }.encode())?;
        self.output.sink.flush()?;
        Ok((self.output.sink, Summary { rows, bytes: self.output.at }))
    }
}

#[cfg(test)]
mod planted;
