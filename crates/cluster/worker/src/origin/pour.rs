//! The bytes of one flight on their way into the tier, wherever they come from.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use forebay_block_store::{Fill, SegmentSpec};
use forebay_metrics::table;
use forebay_placement::{OnTheWay, asks_again, left_to_the_end};
use forebay_runtime::time::{Instant, instant, timeout_at};
use forebay_shared_storage::{Body, Class, Get, GetRange};
use forebay_types::{Error, Owner, PAGE_BYTES, PageRun, Result, WorkerId};

use super::admission::Permit;
use super::elsewhere::{COMES_WITHIN, Heard, Part, with_gaps};
use super::flight::{Flight, Landed, Wanted};
use super::means::Means;
use crate::segment::Segment;

/// Bytes that are put into the store before other tasks of the thread get their turn.
const CHUNK_BYTES: usize = 256 << 10;
/// A whole object of up to so many bytes, whose checksum the store tells, is held back until the last of them was judged, however long that
/// takes: as many as one request for missing pages is for. Larger ones are so for a time.
const HELD_BACK_TO_ITS_END: u64 = 6 << 20;

/// Why a flight ends before it has all of its bytes.
pub(super) enum Stop {
    /// The bytes are not here, and that is no failure of shared storage.
    Gone,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A flight that is being carried out, byte after byte from the first page on.
pub(super) struct Pour<'a> {
    means: &'a Means,
    flight: &'a Flight,
    wanted: &'a Wanted,
    sink: Option<Sink>,
    received: u64,
    /// Of these, from shared storage.
    fetched: u64,
    /// How long it has waited for other workers, beyond what one of them takes that has the pages coming.
    waited: Duration,
}

impl<'a> Pour<'a> {
    pub(super) fn new(means: &'a Means, flight: &'a Flight, wanted: &'a Wanted) -> Self {
        Self { means, flight, wanted, sink: None, received: 0, fetched: 0, waited: Duration::ZERO }
    }

    /// Bytes that the flight has in all.
    fn needed(&self) -> u64 {
        let bytes = self.wanted.segment.bytes_of(self.flight.run);
        bytes.end - bytes.start
    }

    /// Takes bytes that are here already.
    pub(super) async fn take(&mut self, mut bytes: Bytes) -> Result<(), Stop> {
        self.open()?;
        while !bytes.is_empty() {
            tokio::task::yield_now().await;
            self.put(&bytes.split_to(bytes.len().min(CHUNK_BYTES)))?;
        }
        Ok(())
    }

    /// Requests to shared storage, once it is this flight's turn, for exactly those pages of `run`, which come next, that no other worker has by then.
    pub(super) async fn request(&mut self, run: PageRun) -> Result<(), Stop> {
        let mut permit = turn(self.wanted, self.flight, run).await;
        let mut left = Some(run);
        while let Some(run) = left.take() {
            let (heard, coming) = permit.during(self.meanwhile(run)).await;
            if !coming.is_empty() && self.waited < COMES_WITHIN {
                let last = left_to_the_end(run, self.wanted.segment.pages());
                left = last.filter(|last| !heard.has(last.start));
            }
            let now = left.map_or(run, |last| PageRun::new(run.start, last.start));
            self.flight.asks_for(now);
            for part in with_gaps(now, heard.given()) {
                match part {
                    Part::Given(_, bytes) => self.take(bytes).await?,
                    Part::Missing(run) => {
                        self.get(run, &mut permit).await?;
                        table::WORKER_FETCHED_TWICE_BYTES.only().add(self.flight.told_others(run) * PAGE_BYTES);
                    }
                }
            }
            if let Some(last) = left {
                coming.into_iter().for_each(|other| self.flight.asks_later(other, last));
            }
        }
        Ok(())
    }

    /// What other workers have of its pages, before its first turn.
    pub(super) async fn ask(&mut self) -> Heard {
        let (flight, began) = (self.flight, forebay_runtime::now());
        let heard = self.means.elsewhere.ask(&self.wanted.segment, flight.run).await;
        heard.coming().for_each(|worker| flight.asks_later(worker, flight.run));
        self.waited += began.elapsed().saturating_sub(COMES_WITHIN);
        heard
    }

    /// What those workers have of `run` by now that were told to fetch some of it while its request stood in line, or had it coming; and to whom some
    /// may be coming still.
    async fn meanwhile(&mut self, run: PageRun) -> (Heard, Vec<WorkerId>) {
        let (flight, mut heard, mut round) = (self.flight, Heard::default(), 0);
        loop {
            let others: Vec<_> = flight.begins(run).into_iter().map(|(other, _)| other).collect();
            if others.is_empty() || !asks_again(flight.class() == Class::Demand, round, self.waited) {
                return (heard, others);
            }
            let began = forebay_runtime::now();
            self.means.elsewhere.ask_these(&self.wanted.segment, run, others, &mut heard).await;
            self.waited += began.elapsed();
            heard.coming().for_each(|worker| flight.asks_later(worker, run));
            round += 1;
        }
    }

    /// One request for all of the flight, whoever else has some of it: what was wrong here may have gone there.
    pub(super) async fn request_anew(&mut self) -> Result<(), Stop> {
        let mut permit = turn(self.wanted, self.flight, self.flight.run).await;
        self.flight.asks_for(self.flight.run);
        self.get(self.flight.run, &mut permit).await
    }

    /// One request for exactly the pages of `run`, which come next.
    async fn get(&mut self, run: PageRun, permit: &mut Permit) -> Result<(), Stop> {
        let (segment, wanted) = (&self.wanted.segment, self.wanted);
        let bytes = segment.bytes_of(run);
        if self.flight.class() == Class::Prefetch && self.sink.is_none() {
            // Bytes that nobody waits for are not worth a request when there is no room for them.
            self.sink = Some(self.fill().ok_or(Stop::Gone)?);
        }
        let range = GetRange::part(segment.object_bytes_of(run), segment.version.size);
        let get = Get { key: &segment.version.key, range, if_match: Some(&segment.version.tag), class: permit.class() };
        let body = permit.during(wanted.door.storage()?.get(get)).await?;
        self.stream(bytes.end - bytes.start, body, 0, permit).await
    }

    /// Takes `needed` bytes of an answer that has begun, from `skip` on.
    pub(super) async fn stream(&mut self, needed: u64, body: Body, mut skip: u64, permit: &mut Permit) -> Result<(), Stop> {
        let mut body = check(&self.wanted.segment, body)?;
        self.open()?;
        if body.is_checked() && needed == body.range.end - body.range.start {
            self.hold_back()?;
        }
        let until = (needed > HELD_BACK_TO_ITS_END).then(|| instant() + self.means.judged_within);
        let mut left = needed;
        while left > 0 {
            let Some(chunk) = self.next(&mut body, until, permit).await else { break };
            let mut chunk = chunk?;
            let dropped = skip.min(chunk.len() as u64);
            skip -= dropped;
            chunk.advance(dropped as usize);
            chunk.truncate(left.min(chunk.len() as u64) as usize);
            if chunk.is_empty() {
                continue;
            }
            left -= chunk.len() as u64;
            self.put(&chunk)?;
            permit.arrived(chunk.len() as u64);
        }
        if left > 0 {
            return Err(Stop::Failed(Error::retry(format!(
                "/{}/{}: shared storage gave {} of {needed} bytes: try again",
                self.wanted.door.mount.name,
                self.wanted.segment.version.key,
                needed - left
            ))));
        }
        self.fetched += needed;
        Ok(())
    }

    /// The next bytes of an answer. What is held back is so `until` then at most, also where nothing comes any more.
    async fn next(&mut self, body: &mut Body, until: Option<Instant>, permit: &mut Permit) -> Option<Result<Bytes>> {
        let mut next = std::pin::pin!(permit.during(body.next()));
        if let Some(until) = until.filter(|_| self.is_held_back()) {
            // Late or not, a timer lets through what has come already.
            if instant() < until
                && let Ok(bytes) = timeout_at(until, &mut next).await
            {
                return bytes;
            }
            self.release();
        }
        next.await
    }

    fn is_held_back(&self) -> bool {
        matches!(&self.sink, Some(Sink::Store(fill)) if fill.is_held_back())
    }

    /// No page of what comes now is read before its last byte was judged.
    fn hold_back(&mut self) -> Result<(), Stop> {
        assert_eq!(self.received, 0, "a whole object has nothing before it");
        let Some(Sink::Store(fill)) = &mut self.sink else {
            // What goes past the tiers is given to readers as a whole.
            return Ok(());
        };
        if let Err(error) = fill.hold_back() {
            tracing::debug!(segment = %self.wanted.segment.id, %error, "an object that is to be judged goes past the tiers");
            self.sink = None;
            self.pass();
        }
        self.sink.as_ref().map(|_| ()).ok_or(Stop::Gone)
    }

    /// Those who read have waited long enough: they get what has come, and the rest as it comes.
    fn release(&mut self) {
        if let Some(Sink::Store(fill)) = &mut self.sink {
            fill.release();
            self.tell();
        }
    }

    /// Tells those who wait how much has come, and how much of that is readable.
    fn tell(&self) {
        let is_readable = matches!(&self.sink, Some(Sink::Store(_))) && !self.is_held_back();
        let pages = if is_readable { self.received / PAGE_BYTES } else { 0 };
        self.flight.arrived(self.received, pages as u32);
    }

    /// All of it is here.
    pub(super) fn finish(self) -> Landed {
        assert_eq!(self.received, self.needed(), "what goes past the run was cut off");
        let meters = &self.means.signals.meters;
        if self.fetched > 0 {
            meters.fetched.add(self.fetched);
        }
        match self.sink {
            Some(Sink::Pass(bytes)) => {
                meters.passed.add(self.received);
                Landed::Passed(bytes.freeze())
            }
            Some(Sink::Store(fill)) => match fill.finish_pinned() {
                Ok(pinned) => Landed::Stored(pinned),
                Err(error) => {
                    tracing::warn!(segment = %self.wanted.segment.id, %error, "the tiers can't take what was fetched");
                    Landed::Gone
                }
            },
            None => Landed::Gone,
        }
    }

    /// Sees to a place for the bytes.
    fn open(&mut self) -> Result<(), Stop> {
        if self.sink.is_none() {
            self.sink = self.wanted.cache.then(|| self.fill()).flatten();
        }
        if self.sink.is_none() {
            self.pass();
        }
        self.sink.as_ref().map(|_| ()).ok_or(Stop::Gone)
    }

    /// The bytes go to who waits and nowhere else, where somebody does.
    fn pass(&mut self) {
        if self.flight.class() == Class::Demand {
            self.sink = Some(Sink::Pass(BytesMut::with_capacity(self.needed() as usize)));
            self.flight.reaches(OnTheWay::Passing);
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let (received, needed) = (self.received + bytes.len() as u64, self.needed());
        assert!(received <= needed, "{received} bytes have come of {needed}: what goes past the run was cut off");
        let sink = self.sink.as_mut().ok_or(Stop::Gone)?;
        if let Err(error) = sink.write(self.received, bytes) {
            tracing::warn!(segment = %self.wanted.segment.id, %error, "the tiers can't take what was fetched");
            return Err(Stop::Gone);
        }
        self.received += bytes.len() as u64;
        self.tell();
        Ok(())
    }

    fn fill(&self) -> Option<Sink> {
        let (segment, keep) = (&self.wanted.segment, self.wanted.keep);
        let spec = SegmentSpec { id: segment.id, bytes: segment.bytes, owner: Owner::Cache, keep };
        let mut begun = self.means.store.begin_fill(spec, self.flight.run);
        if begun.is_err() && self.flight.class() == Class::Demand && self.means.claims.give_way() {
            begun = self.means.store.begin_fill(spec, self.flight.run);
        }
        match begun {
            Ok(fill) => Some(Sink::Store(fill)),
            Err(error) => {
                tracing::debug!(segment = %spec.id, %error, "no room in the tiers");
                None
            }
        }
    }
}

/// A flight's turn at shared storage, for pages of `run`.
async fn turn(wanted: &Wanted, flight: &Flight, run: PageRun) -> Permit {
    let bytes = wanted.segment.bytes_of(run);
    // Somebody may wait for it by now.
    let place = || (flight.priority(wanted.priority), flight.turn());
    flight.reaches(OnTheWay::InLine);
    wanted.door.admission.enter_as(flight.id, bytes.end - bytes.start, place).await
}

/// Not every store obeys `If-Match`: bytes of another version must not pass for this one.
fn check(segment: &Segment, body: Body) -> Result<Body> {
    let (got, wanted) = (&body.info.version, &segment.version);
    if got.tag != wanted.tag || got.size != wanted.size {
        return Err(Error::conflict(format!(
            "{}: version {} of {} bytes was asked for, shared storage has {} of {} bytes now: open it again",
            wanted.key, wanted.tag, wanted.size, got.tag, got.size
        )));
    }
    Ok(body)
}

/// Where a flight's bytes go.
enum Sink {
    Store(Fill),
    Pass(BytesMut),
}

impl Sink {
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Store(fill) => fill.write(at, bytes),
            Self::Pass(all) => {
                all.extend_from_slice(bytes);
                Ok(())
            }
        }
    }
}
