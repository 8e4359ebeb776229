//! Pages of Parquet files as the library has them, for the checks of [`ParquetColumn`] that come before its decoders.
//!
//! Owns: what is taken from a file's footer for these checks, and how a page is decompressed for them.
//! Never does: read a file, or decide what is wrong with one.
//!
//! Start with [`column_of`].

#![warn(unreachable_pub)]

use std::sync::Arc;

use bytes::Bytes;
use forebay_table::{PageFault, ParquetColumn};
use parquet::basic::Compression;
use parquet::column::page::PageReader;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

/// What pages of a column must agree with.
pub fn column_of(chunk: &ColumnChunkMetaData) -> ParquetColumn {
    ParquetColumn {
        physical_type: chunk.column_type() as i32,
        type_length: chunk.column_descr().type_length(),
        values: chunk.num_values(),
        is_compressed: !matches!(chunk.compression(), Compression::UNCOMPRESSED),
        levels: [chunk.column_descr().max_rep_level(), chunk.column_descr().max_def_level()],
    }
}

/// A page that is looked at before it is decoded: of its bytes with its header, those behind that, no longer compressed.
///
/// # Errors
/// There is no page, or it can't be decompressed.
pub fn decompressed(chunk: &ColumnChunkMetaData, page: Bytes) -> Result<Bytes, PageFault> {
    // A column of this page alone.
    let alone = ColumnChunkMetaData::builder(chunk.column_descr_ptr())
        .set_compression(chunk.compression())
        .set_data_page_offset(0)
        .set_total_compressed_size(page.len() as i64)
        .build();
    let read = alone.and_then(|alone| SerializedPageReader::new(Arc::new(page), &alone, 0, None)?.get_next_page());
    match read {
        Ok(Some(page)) => Ok(page.buffer().clone()),
        Ok(None) => Err(PageFault::Damage("a page has nothing to be read".to_string())),
        Err(error) => Err(PageFault::Damage(format!("a page can't be read: {error}"))),
    }
}
