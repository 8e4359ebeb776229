//! Results as JSON: one array or an object a line, with nulls written out.

use std::io;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::json::writer::{JsonArray, LineDelimited, Writer, WriterBuilder};
use forebay_types::Result;

use super::from_arrow;
use super::plain::plain;

/// JSON objects, a row each; a null is written as such, so that every object has all columns.
pub(super) enum JsonWriter<W: io::Write> {
    Array(Writer<W, JsonArray>),
    Lines(Writer<W, LineDelimited>),
}

impl<W: io::Write> JsonWriter<W> {
    pub(super) fn array(out: W) -> Self {
        Self::Array(WriterBuilder::new().with_explicit_nulls(true).build(out))
    }

    pub(super) fn lines(out: W) -> Self {
        Self::Lines(WriterBuilder::new().with_explicit_nulls(true).build(out))
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = plain(batch)?;
        match self {
            Self::Array(writer) => writer.write(&batch),
            Self::Lines(writer) => writer.write(&batch),
        }
        .map_err(from_arrow)
    }

    pub(super) fn finish(self) -> Result<W> {
        match self {
            Self::Array(mut writer) => {
                writer.finish().map_err(from_arrow)?;
                let mut out = writer.into_inner();
                out.write_all(b"\n")?;
                Ok(out)
            }
            Self::Lines(mut writer) => {
                writer.finish().map_err(from_arrow)?;
                Ok(writer.into_inner())
            }
        }
    }
}
