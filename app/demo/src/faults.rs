//! What can be made to go wrong, and which request is hit by it.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::counters::Kind;

/// Something that goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Any request: answered with this HTTP status instead of being served, as in 503.
    Status(u16),
    /// The same with the code that S3 says why by, as in 403 and `RequestTimeTooSkewed`.
    Refused(u16, &'static str),
    /// Any request: never answered.
    Hang,
    /// A GET of an object: the connection breaks after this many bytes of the body.
    CutAfter(u64),
    /// A GET of an object: nothing follows after this many bytes of the body.
    StallAfter(u64),
    /// A GET of a whole object: this is told as the CRC-32C of its bytes.
    Crc32c(u32),
    /// A GET of an object: its length is not told.
    NoLength,
    /// Any request: served, but the connection breaks instead of an answer.
    LoseAnswer,
}

impl Fault {
    fn concerns(self, kind: Kind) -> bool {
        match self {
            Self::Status(_) | Self::Refused(..) | Self::Hang | Self::LoseAnswer => true,
            Self::CutAfter(_) | Self::StallAfter(_) | Self::Crc32c(_) | Self::NoLength => kind == Kind::Get,
        }
    }
}

/// Faults to come, first in first out; a request takes the first that concerns it.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<VecDeque<Fault>>);

impl Faults {
    pub(crate) fn add(&self, fault: Fault, count: usize) {
        self.0.lock().extend(std::iter::repeat_n(fault, count));
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    pub(crate) fn next(&self, kind: Kind) -> Option<Fault> {
        let mut faults = self.0.lock();
        let at = faults.iter().position(|fault| fault.concerns(kind))?;
        faults.remove(at)
    }
}
