//! Files that take an output's rows when nodes have no room, laid out so that Ballista's own reader finds and ends them.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use ballista_core::JobId;
use bytes::Bytes;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::StreamEncoder;
use datafusion::error::Result;

use super::place::MapNumber;

/// The end of a stream of Arrow messages.
pub(super) const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// What of a map's output found no room in nodes: a file of this executor, as Ballista's own are, which it hands out.
pub(super) struct Spare(File);

impl Spare {
    /// `schema` where what is added does not begin with one.
    pub(super) fn create(
        folder: &Path,
        (job, stage): (&JobId, usize),
        reducer: usize,
        number: MapNumber,
        schema: Option<&SchemaRef>,
    ) -> Result<Self> {
        // As `create_shuffle_path` of Ballista has it.
        let folder = folder.join(job.as_str()).join(stage.to_string()).join(reducer.to_string());
        std::fs::create_dir_all(&folder)?;
        let mut spare = Self(File::create(folder.join(format!("data-{}.arrow", number.in_file())))?);
        if let Some(schema) = schema {
            for buffer in StreamEncoder::try_new(schema)?.encode(&RecordBatch::new_empty(Arc::clone(schema)))? {
                spare.0.write_all(&buffer)?;
            }
        }
        Ok(spare)
    }

    /// Adds messages of a stream of the same schema.
    pub(super) fn add(&mut self, parts: &[Bytes]) -> Result<()> {
        for part in parts {
            self.0.write_all(part)?;
        }
        Ok(())
    }

    /// Nothing comes any more. Who reads it as it comes by wire gives out its last message when something follows, which after the
    /// head of one without columns is the end alone.
    pub(super) fn end(&mut self) -> Result<()> {
        Ok(self.0.write_all(&END)?)
    }
}
