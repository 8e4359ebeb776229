//! An object's bytes as a reader gets them: complete, or an error, and a reader that goes away frees its connection.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use forebay_trace::Span;
use forebay_types::{Attributes, Error, ObjectInfo, Result};

use crate::backend::{Opened, Source};
use crate::bandwidth::Outstanding;

/// The bytes of a read as they come. Dropping it gives the connection up.
///
/// It is complete or it fails: a connection that breaks is taken up where it stopped, at the same version.
pub struct Body {
    /// The version that the bytes are of.
    pub info: ObjectInfo,
    /// What the store says of the object beside.
    pub attributes: Attributes,
    /// Which bytes of the object these are.
    pub range: Range<u64>,
    source: Box<dyn Source>,
    left: u64,
    outstanding: Outstanding,
    /// Ends with it.
    span: Span,
}

impl Body {
    pub(crate) fn new(opened: Opened, outstanding: Outstanding, span: Span) -> Self {
        let Opened { info, attributes, range, source } = opened;
        let left = range.end - range.start;
        Self { info, attributes, range, source, left, outstanding, span }
    }

    /// The next bytes; none when the range is complete. After an error nothing more comes.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        if self.left == 0 {
            return None;
        }
        match self.source.next().await {
            Some(Ok(bytes)) => {
                self.left = self.left.checked_sub(bytes.len() as u64).expect("sources end with their range");
                self.outstanding.arrived(bytes.len() as u64);
                Some(Ok(bytes))
            }
            Some(Err(error)) => {
                self.left = 0;
                self.span.fail(&error);
                Some(Err(error))
            }
            None => {
                let missing = std::mem::take(&mut self.left);
                Some(Err(Error::retry(format!("{}: {missing} bytes are missing at the end: try again", self.info.version.key))))
            }
        }
    }

    /// Whether the bytes are held to a checksum, by which they are judged with the last of them: until then nobody knows what those before
    /// are worth.
    pub fn is_checked(&self) -> bool {
        self.source.is_checked()
    }

    /// All bytes in one piece. The caller answers for the memory: `range` tells how much.
    pub async fn collect(mut self) -> Result<Bytes> {
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        if self.left == 0 {
            return Ok(first);
        }
        let mut all = Vec::with_capacity((self.range.end - self.range.start) as usize);
        all.extend_from_slice(&first);
        while let Some(bytes) = self.next().await {
            all.extend_from_slice(&bytes?);
        }
        Ok(all.into())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("info", &self.info).field("range", &self.range).field("left", &self.left).finish()
    }
}
