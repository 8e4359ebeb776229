//! Cuts an Arrow IPC stream into messages.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::SchemaRef;
use object_store::{ObjectMeta, ObjectStore};

use super::footer::{MAGIC, METADATA_BYTES_MAX, schema_of};
use super::messages::{metadata_of, prefix_bytes};
use crate::paths::guard::fault::{Fault, Result, damage};
use crate::paths::guard::input::Input;

/// A message of a stream.
pub(super) struct Next {
    pub(super) bytes: Bytes,
    /// Bytes before its body.
    pub(super) head_bytes: usize,
}

/// The schema of a stream.
pub(super) async fn schema(store: &Arc<dyn ObjectStore>, file: &ObjectMeta) -> Result<SchemaRef> {
    first(&mut Input::head(store, file)).await
}

/// Takes the message that a stream begins with: its schema.
pub(super) async fn first(input: &mut Input) -> Result<SchemaRef> {
    if input.fill(MAGIC.len() as u64).await? && input.peek().starts_with(MAGIC) {
        return damage("its footer is missing");
    }
    let Some(next) = next(input).await? else { return damage("it has no schema") };
    let message = metadata_of(&next.bytes[prefix_bytes(&next.bytes)..next.head_bytes])?;
    if let Some(schema) = message.header_as_schema() { schema_of(schema) } else { damage("it doesn't begin with its schema") }
}

/// Takes the next message; none at the end.
pub(super) async fn next(input: &mut Input) -> Result<Option<Next>> {
    const CUT: &str = "it ends within a message";
    if input.left == 0 {
        return Ok(None);
    }
    if !input.fill(4).await? {
        return damage(CUT);
    }
    let prefix = prefix_bytes(input.peek());
    if !input.fill(prefix as u64).await? {
        return damage(CUT);
    }
    let mut length = [0; 4];
    length.copy_from_slice(&input.peek()[prefix - 4..prefix]);
    let length = match i32::from_le_bytes(length) {
        0 => return Ok(None),
        length => length,
    };
    let Ok(length) = usize::try_from(length) else { return damage("a message is shorter than nothing") };
    let head_bytes = prefix + length;
    if head_bytes as u64 > METADATA_BYTES_MAX {
        return Err(Fault::Unsupported(format!(
            "a message describes itself by {head_bytes} bytes, and {METADATA_BYTES_MAX} are the most"
        )));
    }
    if !input.fill(head_bytes as u64).await? {
        return damage(CUT);
    }
    let body_bytes = metadata_of(&input.peek()[prefix..head_bytes])?.bodyLength();
    let Ok(body_bytes) = u64::try_from(body_bytes) else { return damage("a message is shorter than nothing") };
    let Some(bytes) = body_bytes.checked_add(head_bytes as u64) else { return damage(CUT) };
    if input.fill(bytes).await? { Ok(Some(Next { bytes: input.take(bytes as usize), head_bytes })) } else { damage(CUT) }
}
