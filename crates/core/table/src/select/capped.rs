//! Bytes up to a number, beyond which none are kept.

use std::io::{self, Write};

use bytes::Bytes;

/// A vector that is given up once it would have too many bytes.
pub(super) struct Capped {
    bytes: Vec<u8>,
    most: usize,
    pub(super) is_over: bool,
}

impl Capped {
    pub(super) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, is_over: false }
    }

    /// All of them; none where there were too many.
    pub(super) fn bytes(self) -> Option<Bytes> {
        (!self.is_over).then(|| Bytes::from(self.bytes))
    }
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_over |= bytes.len() > self.most - self.bytes.len();
        if self.is_over {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
        assert!(self.bytes.len() <= self.most, "{} bytes are kept, of {} at most", self.bytes.len(), self.most);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
