//! Rows as Arrow files, as the engine's own sink writes them.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use datafusion::arrow::ipc::{CompressionType, MetadataVersion};
use datafusion::error::Result;

use super::sink::{Files, WholeSink};
use super::whole::Making;

/// Bytes at which buffers of a file begin: what readers of memory want at most.
const ALIGNMENT: usize = 64;

/// Arrow files.
pub(crate) struct ArrowFiles;

/// Writes Arrow files.
pub(crate) type ArrowSink = WholeSink<ArrowFiles>;

/// An Arrow file that is being written.
pub(crate) struct ArrowMaking(FileWriter<Vec<u8>>);

impl Files for ArrowFiles {
    type Making = ArrowMaking;

    const SINK: &'static str = "ArrowSink";

    fn begin(&self, schema: SchemaRef) -> Result<ArrowMaking> {
        let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
        let options = options.try_with_compression(Some(CompressionType::LZ4_FRAME))?;
        Ok(ArrowMaking(FileWriter::try_new_with_options(Vec::new(), &schema, options)?))
    }
}

impl Making for ArrowMaking {
    fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        Ok(self.0.write(rows)?)
    }

    fn made(&mut self) -> Vec<u8> {
        std::mem::take(self.0.get_mut())
    }

    fn finish(self) -> Result<Vec<u8>> {
        Ok(self.0.into_inner()?)
    }
}
