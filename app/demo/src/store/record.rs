//! An object's file: its bytes, then what is known of it, then the length of that and a mark.
//!
//! ```text
//! data | key | content type | etag | modified_ms: i64 | lengths of the three texts: 3 x u32 | length of data: u64 | mark: 8 bytes
//! ```
//! Numbers are little-endian. The end is of fixed size, so that a file is read from there; one without the mark is the
//! leftover of a write that didn't finish.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const MARK: &[u8; 8] = b"s3objv1\n";
const TAIL_BYTES: u64 = 8 + 12 + 8 + 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: String,
    pub(crate) content_type: Option<String>,
    pub(crate) etag: String,
    pub(crate) modified_ms: i64,
    pub(crate) size: u64,
}

impl Record {
    /// What follows the data.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let texts = [self.key.as_str(), self.content_type.as_deref().unwrap_or(""), &self.etag];
        let mut out = texts.concat().into_bytes();
        out.extend(self.modified_ms.to_le_bytes());
        texts.iter().for_each(|text| out.extend((text.len() as u32).to_le_bytes()));
        out.extend(self.size.to_le_bytes());
        out.extend(MARK);
        out
    }

    /// Reads what follows the data; none when the file isn't whole.
    pub(crate) fn read(file: &File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let Some(tail_at) = length.checked_sub(TAIL_BYTES) else { return Ok(None) };
        let mut tail = [0; TAIL_BYTES as usize];
        file.read_exact_at(&mut tail, tail_at)?;
        if &tail[28..] != MARK {
            return Ok(None);
        }
        let u32_at = |at: usize| u32::from_le_bytes(tail[at..at + 4].try_into().expect("four bytes")) as usize;
        let u64_at = |at: usize| u64::from_le_bytes(tail[at..at + 8].try_into().expect("eight bytes"));
        let (modified_ms, lengths, size) = (u64_at(0) as i64, [u32_at(8), u32_at(12), u32_at(16)], u64_at(20));
        let texts_bytes: usize = lengths.iter().sum();
        if size.checked_add(texts_bytes as u64) != Some(tail_at) {
            return Ok(None);
        }
        let mut texts = vec![0; texts_bytes];
        file.read_exact_at(&mut texts, size)?;
        let Ok(texts) = String::from_utf8(texts) else { return Ok(None) };
        let (key, rest) = texts.split_at(lengths[0]);
        let (content_type, etag) = rest.split_at(lengths[1]);
        Ok(Some(Self {
            key: key.into(),
            content_type: (!content_type.is_empty()).then(|| content_type.into()),
            etag: etag.into(),
            modified_ms,
            size,
        }))
    }
}
