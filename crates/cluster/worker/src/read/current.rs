//! Reads of the version that is the current one.

use forebay_protocol::RangeSpec;
use forebay_types::{Attributes, ErrorKind, Key, MountId, ObjectInfo, Result};

use super::{Answer, Reader, Reads};
use crate::catalogue::OpenedLatest;
use crate::segment::first_part;

/// How often an object may be overwritten between its open and its read before the reader hears of it.
const ATTEMPTS: usize = 3;

/// What is wanted of an object.
#[derive(Clone, Copy)]
pub(crate) struct WantedObject {
    pub(crate) range: RangeSpec,
    /// Bytes of the answer at most; an answer ends with its segment, too.
    pub(crate) first: u32,
    /// What the store says of it beside; with its checksums when true.
    pub(crate) attributes: Option<bool>,
}

/// Bytes of the version that was current.
pub(crate) struct Current {
    pub(crate) info: ObjectInfo,
    pub(crate) attributes: Option<Attributes>,
    /// The first byte, counted from the object's start.
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) answer: Answer,
}

impl Reads {
    /// Bytes of the current version, up to the end of the segment that they begin in.
    pub(crate) async fn current(&self, reader: Reader<'_>, mount: MountId, key: &Key, wanted: WantedObject) -> Result<Current> {
        let door = self.origin.mount(mount).await?;
        let mut attempt = 1;
        loop {
            let rule = match wanted.attributes {
                Some(complete) => self.catalogue.rule_with(&door, key, complete),
                None => self.catalogue.rule(&door),
            };
            let opened = OpenedLatest { range: wanted.range, whole: wanted.attributes == Some(true), rule };
            // The ticket keeps what the opening request brings along on its way until the read has joined it.
            let (mut info, ticket) = self.catalogue.latest(&door, key, opened).await?;
            let mut attributes = None;
            if wanted.attributes.is_some() {
                let known = self.catalogue.with_attributes(&door, info).await?;
                (info, attributes) = (known.0, Some(known.1));
            }
            let bytes = first_part(wanted.range, info.version.size)
                .map_err(|error| error.context(format!("/{}/{key}", door.mount.name)))?;
            let all = bytes.end - bytes.start;
            let len = match wanted.range {
                RangeSpec::Suffix { .. } => all,
                _ => all.min(wanted.first.into()),
            } as u32;
            match self.version(reader, &info.version, bytes.start, len).await {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => attempt += 1,
                result => {
                    // Where the answer is only the first part, the opening request goes on: the rest of what it brings is read next.
                    if let Some(ticket) = ticket.filter(|_| wanted.attributes.is_some()) {
                        ticket.let_go();
                    }
                    return Ok(Current { info, attributes, start: bytes.start, len, answer: result? });
                }
            }
        }
    }
}
