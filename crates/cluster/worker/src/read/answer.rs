//! What a reader gets.

use std::ops::Range;

use bytes::Bytes;
use forebay_protocol::Span;
use forebay_types::{OperationId, PageRun};

use crate::in_place::SessionPins;
use crate::origin::Obtained;
use crate::signals::UnderWay;

/// The bytes of a read, or where they are.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) in_place: Option<(u64, Span)>,
    pub(crate) payload: Vec<Bytes>,
    /// Nothing of it had to be fetched.
    pub(crate) hit: bool,
    /// Until it is sent.
    pub(crate) under_way: Option<UnderWay>,
}

/// Who reads, and how.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) operation: OperationId,
    /// Where pins are kept for it, when it asks to read in place and may.
    pub(crate) pins: Option<&'a SessionPins>,
}

/// A pin and a span where the client may read in place and not too much is pinned; else the bytes.
pub(crate) fn answer(reader: Reader<'_>, obtained: Obtained, run: PageRun, range: Range<u64>) -> Answer {
    let held = run.bytes();
    assert!(held.start <= range.start && range.end <= held.end, "{range:?} is answered from the pages {held:?}");
    match (obtained, reader.pins) {
        (Obtained::Whole(pinned), Some(pins)) => {
            let offset = pinned.arena_offset() + (range.start - run.bytes().start);
            match pins.add(pinned) {
                Ok(pin) => {
                    let span = Span { offset, len: range.end - range.start };
                    Answer { in_place: Some((pin, span)), ..Answer::default() }
                }
                Err(pinned) => Answer { payload: Obtained::Whole(pinned).slices(run, range), ..Answer::default() },
            }
        }
        (obtained, _) => Answer { payload: obtained.slices(run, range), ..Answer::default() },
    }
}
