//! Bytes of whatever version is current.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use forebay_protocol::RangeSpec;
use forebay_types::{Error, ErrorKind, ForebayPath, ObjectInfo, OperationId, Result, SEGMENT_BYTES};

use super::first::{First, FirstRead, Share};
use super::{Reads, start_of};

/// How often an object that is overwritten while its second segment is read is begun anew.
const TRIES: usize = 3;

/// A read of an object whose version the reader does not know yet, as a gateway serves it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRead {
    /// Which bytes are wanted in the end.
    pub range: RangeSpec,
    /// Bytes of the first answer at most; those of a suffix come whole, up to the segment's end.
    pub first: u32,
    /// Checksums of the whole object are wanted too, where the store has any.
    pub complete: bool,
}

impl Reads {
    /// Bytes of the current version, cut off at the object's end, and which they are.
    pub(crate) async fn read_latest(
        &self,
        operation: OperationId,
        path: &ForebayPath,
        range: RangeSpec,
    ) -> Result<(ObjectInfo, Range<u64>, Bytes)> {
        let mount = &self.routes.mount(path).await?;
        if let RangeSpec::Bounded { start, len: 0 } = range {
            let info = self.open(path).await?;
            let wanted = range.within(info.version.size).map_err(|error| error.context(path))?;
            return Ok((info, start..wanted.end, Bytes::new()));
        }
        let start = start_of(range);
        if u32::try_from(start / SEGMENT_BYTES).is_err() {
            return Err(Error::invalid(format!("{path}: no object reaches byte {start}")));
        }
        for attempt in 1.. {
            let first = First { operation, mount, path, range, share: Share::Segment };
            let FirstRead { info, range: wanted, first, bytes, .. } = self.first_of(first).await?;
            if first.end == wanted.end {
                return Ok((info, first, bytes));
            }
            match self.read(operation, &info.version, first.end..wanted.end).await {
                Ok(rest) => {
                    let mut all = BytesMut::with_capacity(bytes.len() + rest.len());
                    all.extend_from_slice(&bytes);
                    all.extend_from_slice(&rest);
                    return Ok((info, wanted, all.freeze()));
                }
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < TRIES => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// The first bytes of the current version, and what the store says of it.
    pub(crate) async fn read_object(&self, operation: OperationId, path: &ForebayPath, read: ObjectRead) -> Result<FirstRead> {
        let mount = &self.routes.mount(path).await?;
        let ObjectRead { range, first, complete } = read;
        let first = First { operation, mount, path, range, share: Share::Bytes { first, complete } };
        self.first_of(first).await
    }
}
