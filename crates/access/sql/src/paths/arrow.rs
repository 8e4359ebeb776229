use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::ipc::convert::fb_to_schema;
use datafusion::arrow::ipc::{Block, Footer, root_as_footer};
use datafusion::error::Result;
use forebay_types::Error;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::paths::listing::external;
use crate::paths::location::shown;

/// Ends an Arrow IPC file, after the length of its footer.
const MAGIC: &[u8] = b"ARROW1";
/// Bytes after the footer: its length and the magic.
const TAIL_BYTES: u64 = 10;

/// The common schema of Arrow IPC files, from their footers; none when one of them is a stream, which has no footer.
/// The engine's own way takes files with 8 bytes before the first message only, which those it writes don't have.
pub(super) async fn schema(store: &Arc<dyn ObjectStore>, files: &[ObjectMeta]) -> Result<Option<SchemaRef>> {
    let mut schemas = Vec::new();
    for meta in files {
        if meta.size < TAIL_BYTES {
            return Ok(None);
        }
        let end = meta.size - TAIL_BYTES;
        let tail = store.get_range(&meta.location, end..meta.size).await?;
        let Some((length, MAGIC)) = tail.split_first_chunk::<4>() else { return Ok(None) };
        let Some(start) = end.checked_sub(u64::from(u32::from_le_bytes(*length))) else { return Ok(None) };
        let footer = store.get_range(&meta.location, start..end).await?;
        let Ok(footer) = root_as_footer(&footer) else { return Ok(None) };
        let Some(schema) = footer.schema() else { return Ok(None) };
        check_blocks(&footer, meta)?;
        schemas.push(fb_to_schema(schema));
    }
    Ok(Some(Arc::new(Schema::try_merge(schemas)?)))
}

/// Refuses a footer whose messages lie beyond the file: a reader makes room for all of a message before it reads any of it.
fn check_blocks(footer: &Footer<'_>, meta: &ObjectMeta) -> Result<()> {
    let fits = |block: &Block| {
        let sizes = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let end = sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(u64::try_from(*size).ok()?));
        end.is_some_and(|end| end <= meta.size)
    };
    let mut blocks = footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    match blocks.all(fits) {
        true => Ok(()),
        false => Err(external(Error::corrupt(format!(
            "'{}' ({} bytes) is damaged or cut short: its footer names messages beyond its end; write it again",
            shown(meta.location.as_ref()),
            meta.size
        )))),
    }
}
