//! Pages of Parquet files as the library has them, for the checks of [`ParquetColumn`] that come before its decoders.
//!
//! Owns: what is taken from a file's footer for these checks, how a page is decompressed for them, and whether it becomes as many bytes as
//! its header says.
//! Never does: read a file.
//!
//! Start with [`column_of`].

#![warn(unreachable_pub)]

mod unpack;

use std::sync::Arc;

use bytes::Bytes;
use forebay_table::{PageFault, ParquetColumn, ParquetCopies, ParquetPage};
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

/// Whether a page is looked at behind its header. Others are passed to [`ParquetCopies::pass`].
pub fn is_looked_at(chunk: &ColumnChunkMetaData, page: &ParquetPage, copies: &ParquetCopies) -> bool {
    copies.wants(page) || (page.compressed.is_some() && unpack::is_looked_at(chunk.compression()))
}

/// Looks at the next page of a column, of which `bytes` are all with its header, before it is decoded.
///
/// # Errors
/// It becomes fewer or more bytes than its header says, its text is not to be decoded, its column has fewer values than its pages, or they
/// take more in all rows that are decoded together than `copies` allows.
pub fn look(chunk: &ColumnChunkMetaData, page: &ParquetPage, bytes: Bytes, copies: &mut ParquetCopies) -> Result<(), PageFault> {
    assert_eq!(bytes.len() as u64, page.bytes, "a page is looked at as a whole");
    if let Some(compressed) = page.compressed {
        unpack::check(chunk.compression(), &bytes[compressed.at as usize..], compressed.becomes)?;
    }
    copies.check_fixed()?;
    if copies.wants(page) { copies.count(page, &decompressed(chunk, bytes)?) } else { copies.pass(page) }
}

/// Of a page's bytes with its header, those behind that, no longer compressed.
fn decompressed(chunk: &ColumnChunkMetaData, page: Bytes) -> Result<Bytes, PageFault> {
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
