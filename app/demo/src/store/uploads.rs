//! Uploads that are not objects yet: their parts, which of them count, and the one object that they become.

use std::collections::BTreeMap;

use forebay_types::hex;
use ring::digest::{SHA256, digest};

use super::draft::Draft;
use super::fault::StoreError;
use super::place::{Opened, Place};

/// Smallest part that isn't the last, as in S3.
const PART_BYTES_MIN: u64 = 5 << 20;

/// An object that is being made of parts.
pub(crate) struct Upload {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) content_type: Option<String>,
    pub(crate) parts: BTreeMap<i32, Part>,
}

pub(crate) struct Part {
    pub(crate) place: Place,
    pub(crate) size: u64,
    pub(crate) etag: String,
}

impl Upload {
    /// The parts that the client named, in its order, opened.
    pub(crate) fn choose(&self, named: &[(i32, String)]) -> Result<Chosen, StoreError> {
        let mut chosen = Chosen { parts: Vec::new(), etag: String::new() };
        let mut tags = String::new();
        for (at, (number, etag)) in named.iter().enumerate() {
            let ordered = at == 0 || named[at - 1].0 < *number;
            let part = self.parts.get(number).filter(|part| ordered && part.etag == *etag).ok_or(StoreError::BadPart)?;
            if at + 1 < named.len() && part.size < PART_BYTES_MIN {
                return Err(StoreError::PartTooSmall);
            }
            tags.push_str(&part.etag);
            chosen.parts.push((part.place.open()?, part.size));
        }
        if chosen.parts.is_empty() {
            return Err(StoreError::BadPart);
        }
        let hash = digest(&SHA256, tags.as_bytes());
        chosen.etag = format!("{}-{}", hex(&hash.as_ref()[..16]), named.len());
        Ok(chosen)
    }

    pub(crate) fn remove_files(&self) {
        for part in self.parts.values() {
            let _ = part.place.remove();
        }
    }
}

/// Parts to be made an object.
pub(crate) struct Chosen {
    parts: Vec<(Opened, u64)>,
    pub(crate) etag: String,
}

impl Chosen {
    /// Copies the parts into one. Takes as long as the disk does.
    pub(crate) fn join(&self, mut draft: Draft) -> Result<Draft, StoreError> {
        for (part, size) in &self.parts {
            draft.copy(part, *size)?;
        }
        Ok(draft)
    }
}
