//! The end of an Arrow IPC file, where it says where its messages are.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::convert::fb_to_schema;
use datafusion::arrow::ipc::{Block, MetadataVersion, Schema, root_as_footer};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::paths::guard::fault::{Fault, Result, caught, damage};
use crate::rules::of_one_file;

/// Begins and ends an Arrow IPC file; at the end the length of its footer stands before it.
pub(super) const MAGIC: &[u8] = b"ARROW1";
/// Bytes after the footer: its length and the magic.
const TAIL_BYTES: u64 = 10;
/// Bytes at the end of a file that most footers fit into.
const LIKELY_BYTES: u64 = 64 << 10;
/// Bytes of a footer, or of a message beside what it carries: those of millions of columns or messages.
pub(super) const METADATA_BYTES_MAX: u64 = 64 << 20;
/// Bytes before a message's metadata: at the least its length.
const PREFIX_BYTES: i32 = 4;

/// What the end of an Arrow IPC file says: where its messages are, which lie in the file and beside each other.
pub(super) struct Footer {
    pub(super) schema: SchemaRef,
    pub(super) version: MetadataVersion,
    pub(super) dictionaries: Vec<Block>,
    pub(super) batches: Vec<Block>,
}

/// The footer of a file; none of a stream, which has none.
pub(super) async fn footer(store: &Arc<dyn ObjectStore>, file: &ObjectMeta) -> Result<Option<Footer>> {
    if file.size < TAIL_BYTES {
        return Ok(None);
    }
    let from = file.size.saturating_sub(LIKELY_BYTES);
    let likely = store.get_range(&file.location, from..file.size).await?;
    let Some(end) = likely.len().checked_sub(TAIL_BYTES as usize) else { return damage("it is shorter than its store says") };
    let Some((length, MAGIC)) = likely[end..].split_first_chunk::<4>() else { return Ok(None) };
    let length = u64::from(u32::from_le_bytes(*length));
    let start = start_of(length, file.size)?;
    match start.checked_sub(from) {
        Some(at) => parsed(&likely[at as usize..end], file.size).map(Some),
        None => parsed(&store.get_range(&file.location, start..file.size - TAIL_BYTES).await?, file.size).map(Some),
    }
}

/// Where a footer of so many bytes begins.
fn start_of(length: u64, file_bytes: u64) -> Result<u64> {
    let Some(start) = file_bytes.saturating_sub(TAIL_BYTES).checked_sub(length) else {
        return damage("its footer is longer than it");
    };
    match length > METADATA_BYTES_MAX {
        true => Err(Fault::Unsupported(format!("its footer has {length} bytes, and {METADATA_BYTES_MAX} are the most"))),
        false => Ok(start),
    }
}

fn parsed(bytes: &[u8], file_bytes: u64) -> Result<Footer> {
    let footer = root_as_footer(bytes).map_err(|error| Fault::Damage(format!("its footer can't be read ({error})")))?;
    let Some(schema) = footer.schema() else { return damage("its footer has no schema") };
    let schema = schema_of(schema)?;
    let blocks = |vector: Option<_>| -> Vec<Block> { vector.into_iter().flatten().copied().collect() };
    let (dictionaries, batches) = (blocks(footer.dictionaries()), blocks(footer.recordBatches()));
    check(dictionaries.iter().chain(&batches), file_bytes)?;
    Ok(Footer { schema, version: footer.version(), dictionaries, batches })
}

/// The schema that a message or a footer has.
pub(super) fn schema_of(schema: Schema<'_>) -> Result<SchemaRef> {
    if !schema.endianness().equals_to_target_endianness() {
        return Err(Fault::Unsupported("its numbers have another byte order than this machine's".to_string()));
    }
    caught(|| Ok::<_, Fault>(of_one_file(Arc::new(fb_to_schema(schema)))))
}

/// Refuses messages beyond the file, for which a reader would make room, and such as overlap: a footer could name one a million
/// times.
fn check<'a>(blocks: impl Iterator<Item = &'a Block>, file_bytes: u64) -> Result<()> {
    let span = |block: &Block| {
        let sizes = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let end = sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(u64::try_from(*size).ok()?))?;
        (end <= file_bytes && block.metaDataLength() >= PREFIX_BYTES).then_some((block.offset() as u64, end))
    };
    let Some(mut spans) = blocks.map(span).collect::<Option<Vec<_>>>() else {
        return damage("its footer names messages beyond its end");
    };
    spans.sort_unstable();
    if spans.windows(2).all(|pair| pair[0].1 <= pair[1].0) { Ok(()) } else { damage("its footer names messages that overlap") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_is_no_longer_than_footers_are() {
        let most = METADATA_BYTES_MAX;
        assert_eq!(start_of(most, most + TAIL_BYTES + 7).ok(), Some(7));
        assert!(
            matches!(start_of(most + 1, 1 << 40), Err(Fault::Unsupported(why)) if why.contains("its footer has 67108865 bytes"))
        );
        assert!(matches!(start_of(100, 109), Err(Fault::Damage(why)) if why.contains("longer than it")));
    }
}
