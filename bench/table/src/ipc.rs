//! A mapped Arrow IPC file, read without a copy.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, root_as_footer};
use arrow_schema::ArrowError;
use bytes::Bytes;
use forebay_types::{Error, Result};

pub struct IpcFile {
    file: Buffer,
    decoder: FileDecoder,
    blocks: Vec<Block>,
}

impl IpcFile {
    pub fn open(file: &Bytes, columns: Option<Vec<usize>>) -> Result<Self> {
        let bad = |what: &dyn std::fmt::Display| Error::corrupt(format!("Arrow IPC file: {what}"));
        let end = file.len() - 10;
        let tail = file[end..].try_into().map_err(|error| bad(&error))?;
        let length = read_footer_length(tail).map_err(|error| bad(&error))?;
        let footer = root_as_footer(&file[end - length..end]).map_err(|error| bad(&error))?;
        let schema = fb_to_schema(footer.schema().ok_or_else(|| bad(&"no schema"))?);
        let mut decoder = FileDecoder::new(Arc::new(schema), footer.version());
        if let Some(columns) = columns {
            decoder = decoder.with_projection(columns);
        }
        let blocks = footer.recordBatches().ok_or_else(|| bad(&"no batches"))?.iter().copied().collect();
        Ok(Self { file: Buffer::from(file.clone()), decoder, blocks })
    }

    pub fn batches(&self) -> impl Iterator<Item = RecordBatch> + '_ {
        self.blocks.iter().map(|block| {
            let length = block.metaDataLength() as usize + block.bodyLength() as usize;
            let bytes = self.file.slice_with_length(block.offset() as usize, length);
            let batch = self.decoder.read_record_batch(block, &bytes);
            batch
                .and_then(|batch| batch.ok_or_else(|| ArrowError::IpcError("no batch".into())))
                .expect("the file was written whole")
        })
    }
}
