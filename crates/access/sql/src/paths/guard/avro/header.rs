//! What an Avro file begins with, read and written.

use super::codec::Codec;
use super::varint::{put_count, take, take_count};
use crate::paths::guard::fault::{Fault, Result, damage};
use crate::paths::guard::input::Input;

const MAGIC: &[u8] = b"Obj\x01";
/// Bytes of what stands between blocks.
pub(super) const SYNC_BYTES: usize = 16;
/// Bytes of a header; schemas are a few thousand.
const BYTES_MAX: u64 = 16 << 20;

/// What an Avro file begins with.
#[derive(Debug)]
pub(super) struct Header {
    /// The schema as the file has it: JSON.
    pub(super) schema: Vec<u8>,
    pub(super) codec: Codec,
    /// Stands after each block.
    pub(super) sync: [u8; SYNC_BYTES],
}

impl Header {
    /// Takes the header of a file.
    pub(super) async fn take(input: &mut Input) -> Result<Self> {
        let mut wanted = 4_096;
        loop {
            let all = input.left;
            input.fill(wanted.min(all)).await?;
            if let Some((header, bytes)) = Self::parse(input.peek())? {
                input.take(bytes);
                return Ok(header);
            }
            if wanted >= all.min(BYTES_MAX) {
                return damage("its header has no end");
            }
            wanted *= 4;
        }
    }

    /// The header that bytes begin with, and its length; none where they end within it.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>> {
        let Some(mut left) = bytes.strip_prefix(MAGIC) else {
            return if MAGIC.starts_with(bytes) { Ok(None) } else { damage("it doesn't begin as Avro files do") };
        };
        let (mut schema, mut codec) = (None, None);
        loop {
            let Some(count) = take(&mut left) else { return Ok(None) };
            if count == 0 {
                break;
            }
            if count < 0 && take(&mut left).is_none() {
                return Ok(None);
            }
            for _ in 0..count.unsigned_abs() {
                let Some((key, value)) = text(&mut left).and_then(|key| Some((key, text(&mut left)?))) else { return Ok(None) };
                match key {
                    b"avro.schema" => schema = Some(value.to_vec()),
                    b"avro.codec" => codec = Some(value),
                    _ => {}
                }
            }
        }
        let Some((sync, left)) = left.split_first_chunk::<SYNC_BYTES>() else { return Ok(None) };
        let Some(schema) = schema else { return damage("its header has no schema") };
        let header = Self { schema, codec: Codec::of_name(codec)?, sync: *sync };
        Ok(Some((header, bytes.len() - left.len())))
    }

    /// A file with these rows and nothing else, which are not compressed.
    pub(super) fn file_of(&self, rows: usize, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.schema.len() + bytes.len() + 128);
        out.extend_from_slice(MAGIC);
        put_count(1, &mut out);
        put_text(b"avro.schema", &mut out);
        put_text(&self.schema, &mut out);
        put_count(0, &mut out);
        out.extend_from_slice(&self.sync);
        if rows > 0 {
            put_count(rows, &mut out);
            put_text(bytes, &mut out);
            out.extend_from_slice(&self.sync);
        }
        out
    }

    /// The schema as text.
    pub(super) fn schema_text(&self) -> Result<&str> {
        std::str::from_utf8(&self.schema).map_err(|error| Fault::Damage(format!("its schema is no text ({error})")))
    }
}

/// Takes bytes after their length; none where they end before.
fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_count(bytes)?).ok()?;
    let (text, left) = bytes.split_at_checked(length)?;
    *bytes = left;
    Some(text)
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    put_count(text.len(), out);
    out.extend_from_slice(text);
}
