use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_protocol::Span;
use forebay_types::{Error, ObjectVersion, OperationId, PageRun, Result, SEGMENT_BYTES};

use crate::gate::Line;
use crate::obtain::{Missed, Obtained};
use crate::segment::Segment;
use crate::serving::Serving;
use crate::session::WorkerSession;

/// The bytes of a read, or where they are.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) in_place: Option<(u64, Span)>,
    pub(crate) payload: Vec<Bytes>,
    /// Nothing of it had to be fetched.
    pub(crate) hit: bool,
}

/// Who reads, and how.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) session: &'a WorkerSession,
    pub(crate) operation: OperationId,
    /// Asked for in place, by a client that may.
    pub(crate) in_place: bool,
}

impl Serving {
    /// Bytes of one version within one segment.
    pub(crate) async fn read(&self, reader: Reader<'_>, version: &ObjectVersion, start: u64, len: u32) -> Result<Answer> {
        let began = Instant::now();
        let door = match self.mounts.find(version.mount) {
            Some(door) => door,
            None => self.mount(version.mount).await?,
        };
        if len == 0 {
            return Ok(Answer::default());
        }
        let segment = Segment::holding(version, start)?;
        let (id, range) = (segment.id, start - segment.start..start - segment.start + u64::from(len));
        if range.end > u64::from(segment.bytes) {
            return Err(Error::invalid(format!(
                "{}: bytes {start}..{} go past their segment's end at {}",
                version.key,
                start + u64::from(len),
                segment.end()
            )));
        }
        let run = PageRun::covering(range.clone()).expect("the range is not empty");
        let (mut answer, missed) = match self.store.pin(id, run) {
            Some(pinned) => (answer(reader, Obtained::Whole(pinned), run, range.clone()), Missed::default()),
            None => {
                let wanted = self.wanted(&door, segment, Line::Demand, false);
                if self.is_wide(run) {
                    let (payload, missed) = self.obtain_wide(&wanted, run, range.clone()).await?;
                    (Answer { payload, ..Answer::default() }, missed)
                } else {
                    let (obtained, missed) = self.obtain(&wanted, run).await?;
                    (answer(reader, obtained, run, range.clone()), missed)
                }
            }
        };
        answer.hit = missed.0.is_empty();
        let took = began.elapsed();
        self.meters.read(1, len.into(), u64::from(len) - missed.bytes_of(&range).min(len.into()));
        self.meters.took(took);
        self.counts.learn(id, version, (start / SEGMENT_BYTES) as u32);
        self.counts.read(reader.operation, id, 1, len.into(), took);
        Ok(answer)
    }

    /// Reads in place that a client reports.
    pub(crate) fn count_in_place(&self, counts: &[forebay_protocol::InPlaceCount]) {
        for count in counts {
            let bytes = count.bytes.min(u64::from(count.reads) * SEGMENT_BYTES);
            // The store wants to know how many times over the segment was read: a scan in small reads is one time.
            let held = self.store.held(count.segment).dram_bytes.max(1);
            let times = bytes.div_ceil(held).min(u64::from(count.reads)) as u32;
            self.store.touch(count.segment, None, times);
            self.meters.read(count.reads.into(), bytes, bytes);
            self.counts.read(count.operation, count.segment, count.reads.into(), bytes, Duration::ZERO);
        }
    }
}

/// A pin and a span where the client may read in place and not too much is pinned; else the bytes.
pub(crate) fn answer(reader: Reader<'_>, obtained: Obtained, run: PageRun, range: Range<u64>) -> Answer {
    match obtained {
        Obtained::Whole(pinned) if reader.in_place => {
            let offset = pinned.arena_offset() + (range.start - run.bytes().start);
            match reader.session.pins.add(pinned) {
                Ok(pin) => {
                    let span = Span { offset, len: range.end - range.start };
                    Answer { in_place: Some((pin, span)), ..Answer::default() }
                }
                Err(pinned) => Answer { payload: Obtained::Whole(pinned).slices(run, range), ..Answer::default() },
            }
        }
        obtained => Answer { payload: obtained.slices(run, range), ..Answer::default() },
    }
}
