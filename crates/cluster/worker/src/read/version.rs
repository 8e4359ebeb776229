//! Reads of a version that the reader knows.

use forebay_protocol::AccessWay;
use forebay_types::{Error, ObjectVersion, PageRun, Result, SEGMENT_BYTES};

use super::{Answer, Reader, Reads, answer};
use crate::origin::{Missed, Obtained, Priority};
use crate::segment::Segment;
use crate::signals::Made;

impl Reads {
    /// Bytes of one version within one segment.
    pub(crate) async fn version(&self, reader: Reader<'_>, version: &ObjectVersion, start: u64, len: u32) -> Result<Answer> {
        let began = forebay_runtime::now();
        let door = self.origin.mount(version.mount).await?;
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
        let under_way = self.signals.popularity.enter(id);
        let run = PageRun::covering(range.clone()).expect("the range is not empty");
        let (mut answer, missed) = match self.origin.store.pin(id, run) {
            Some(pinned) => (answer(reader, Obtained::Whole(pinned), run, range.clone()), Missed::default()),
            None => {
                door.check_queue(Priority::Demand, || !self.origin.store.state(id, run).missing.is_empty())?;
                let wanted = self.origin.wanted_by(reader.operation, &door, segment);
                if self.origin.is_wide(run) {
                    let (payload, missed) = Box::pin(self.origin.obtain_wide(&wanted, run, range.clone())).await?;
                    (Answer { payload, ..Answer::default() }, missed)
                } else {
                    let (obtained, missed) = Box::pin(self.origin.obtain(&wanted, run)).await?;
                    (answer(reader, obtained, run, range.clone()), missed)
                }
            }
        };
        answer.under_way = Some(under_way);
        answer.hit = missed.fetched.is_empty();
        self.origin.claims.read(reader.operation, id, run);
        let took = began.elapsed();
        let hit_bytes = u64::from(len) - missed.bytes_of(&range).min(len.into());
        self.signals.meters.read(Some(&*door.reads), 1, len.into(), hit_bytes);
        self.signals.meters.took(Some(&*door.reads), missed.served_from(), took);
        self.signals.popularity.learn(id, version, (start / SEGMENT_BYTES) as u32);
        self.signals.popularity.read(reader.operation, id, 1, len.into(), took);
        self.signals.accessed.made(&Made {
            operation: Some(reader.operation),
            object: (version.mount, &version.key),
            start,
            bytes: len.into(),
            times: 1,
            way: if answer.in_place.is_some() { AccessWay::InPlace } else { AccessWay::Answered },
        });
        Ok(answer)
    }
}
