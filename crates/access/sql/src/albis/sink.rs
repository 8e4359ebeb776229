//! Rows as table files.

use std::collections::BTreeMap;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use forebay_table::{Options, Writer};

use super::options::parse;
use crate::error::external;
use crate::sinks::{Files, Making, WholeSink};

/// Table files that are cut as a statement's options say.
pub(crate) struct TableFiles {
    pub(crate) said: BTreeMap<String, String>,
    options: Options,
}

/// Writes table files.
pub(crate) type TableSink = WholeSink<TableFiles>;

impl TableFiles {
    /// `Invalid` for options that there are not.
    pub(crate) fn new(said: BTreeMap<String, String>) -> forebay_types::Result<Self> {
        Ok(Self { options: parse(&said)?, said })
    }
}

/// A table file that is being written.
pub(crate) struct TableMaking {
    writer: Writer<Vec<u8>>,
    pushed: u64,
}

impl Files for TableFiles {
    type Making = TableMaking;

    const SINK: &'static str = "TableSink";

    fn begin(&self, schema: SchemaRef) -> Result<TableMaking> {
        let writer = Writer::new(Vec::new(), schema, self.options.clone()).map_err(external)?;
        Ok(TableMaking { writer, pushed: 0 })
    }
}

impl Making for TableMaking {
    fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        self.pushed += rows.num_rows() as u64;
        self.writer.push(rows).map_err(external)
    }

    fn made(&mut self) -> Vec<u8> {
        std::mem::take(self.writer.sink_mut())
    }

    fn finish(self) -> Result<Vec<u8>> {
        let (rest, summary) = self.writer.finish().map_err(external)?;
        assert_eq!(summary.rows, self.pushed, "a table has the rows that were written");
        Ok(rest)
    }
}
