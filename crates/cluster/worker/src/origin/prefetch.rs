//! Pages that will be asked for.

use forebay_types::{Error, ObjectVersion, PageRun, PlanTurn, Result, SegmentId, split_range};
use futures::FutureExt;
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};

use super::Origin;
use super::admission::Priority;
use super::claims::HeldFor;
use super::flights::Ticket;
use super::mounts::MountDoor;
use super::piece::Missed;
use crate::segment::Segment;

/// How pages are brought that will be asked for.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    /// Their place among the mount's requests.
    pub(crate) priority: Priority,
    /// Where the plan stands that will read them; none where there is no plan.
    pub(crate) turn: Option<PlanTurn>,
    /// The segment is kept, as an administrator's pin does it.
    pub(crate) keep: bool,
    /// For whom what was brought is held, if it is.
    pub(crate) held_for: Option<HeldFor>,
}

/// Flights of one request that stand in line at once: more than may run, so that the link never waits.
const FLIGHTS_MAX: usize = 24;

impl Origin {
    /// Fetches ranges of one version in this order and gives the bytes that had to be fetched. Dropping the future gives up what nobody
    /// else waits for.
    pub(crate) async fn prefetch(
        &self,
        version: &ObjectVersion,
        ranges: &[(u64, u32)],
        Ahead { priority, turn, keep, held_for }: Ahead,
    ) -> Result<u64> {
        let door = self.mount(version.mount).await?;
        let mut coming = FuturesUnordered::new();
        let mut fetched_bytes = 0;
        let runs = runs(version, ranges)?;
        door.check_queue(priority, || runs.iter().any(|(segment, run)| !self.store.state(segment.id, *run).missing.is_empty()))?;
        for (segment, run) in runs {
            let (id, bytes) = (segment.id, segment.bytes_of(run));
            let mut wanted = self.wanted(&door, segment, priority, keep);
            wanted.turn = turn.unwrap_or(wanted.turn);
            if wanted.keep {
                self.store.set_keep(id, true);
            }
            let joined = self.flights.join(&wanted, run, true);
            // What is on its way already is counted where it was asked for first.
            let fresh = joined.tickets.iter().filter(|ticket| ticket.first).map(|ticket| ticket.run);
            fetched_bytes += Missed { fetched: fresh.collect(), ..Missed::default() }.bytes_of(&bytes);
            coming.extend(joined.tickets.into_iter().map(|ticket| self.arrive(&door, version, id, ticket, held_for)));
            if !keep {
                // What is on disk is wanted in DRAM soon; where that fails the reader fetches it.
                join_all(joined.disk.iter().map(|run| self.store.load(id, *run))).await;
            }
            for run in joined.dram.iter().chain(&joined.disk) {
                self.claim(held_for, id, *run);
            }
            // What has arrived is let go of soon, so that it doesn't stand in the way of what follows.
            while let Some(Some(arrived)) = coming.next().now_or_never() {
                arrived?;
            }
            while coming.len() > FLIGHTS_MAX
                && let Some(arrived) = coming.next().await
            {
                arrived?;
            }
        }
        while let Some(arrived) = coming.next().await {
            arrived?;
        }
        Ok(fetched_bytes)
    }

    fn claim(&self, held_for: Option<HeldFor>, id: SegmentId, run: PageRun) {
        if let Some(held_for) = held_for {
            self.claims.claim(held_for, id, run);
        }
    }

    async fn arrive(
        &self,
        door: &MountDoor,
        version: &ObjectVersion,
        id: SegmentId,
        ticket: Ticket,
        held_for: Option<HeldFor>,
    ) -> Result<()> {
        let arrived = ticket.wait().await?;
        // While what has arrived is still held by this.
        self.claim(held_for, id, ticket.run);
        if arrived.is_none() && !self.store.state(id, ticket.run).missing.is_empty() {
            return Err(Error::retry(format!(
                "/{}/{}: the worker's tiers have no room: free something, or give them more",
                door.mount.name, version.key
            )));
        }
        Ok(())
    }
}

/// The runs of pages that hold the ranges, in their order; one that goes on where the last one ended is made part of it.
fn runs(version: &ObjectVersion, ranges: &[(u64, u32)]) -> Result<Vec<(Segment, PageRun)>> {
    let mut runs: Vec<(Segment, PageRun)> = Vec::new();
    for (start, len) in ranges {
        let range = *start..start.saturating_add(u64::from(*len));
        if range.end > version.size {
            return Err(Error::invalid(format!("{}: {range:?} goes past its end, it has {} bytes", version.key, version.size)));
        }
        for part in split_range(range) {
            let bytes = u64::from(part.start)..u64::from(part.start) + u64::from(part.len);
            let Some(run) = PageRun::covering(bytes) else { continue };
            let start = part.object_range().start;
            match runs.last_mut() {
                Some((segment, last)) if segment.start <= start && start < segment.end() && joins(*last, run) => {
                    *last = PageRun::new(last.start, last.end().max(run.end()));
                }
                _ => runs.push((Segment::holding(version, start)?, run)),
            }
        }
    }
    Ok(runs)
}

/// Whether `next` begins within `last` or right behind it.
fn joins(last: PageRun, next: PageRun) -> bool {
    (last.start..=last.end()).contains(&next.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::{Key, MountId, SEGMENT_BYTES, VersionTag};

    #[test]
    fn neighbours_are_one_run() {
        let tag = VersionTag::etag("\"t\"");
        let version = ObjectVersion { mount: MountId(1), key: Key::new("k").unwrap(), tag, size: SEGMENT_BYTES + 8192 };
        let pages = |ranges: &[(u64, u32)]| {
            let runs = runs(&version, ranges).unwrap();
            runs.iter().map(|(segment, run)| (segment.start, run.start, run.end())).collect::<Vec<_>>()
        };
        assert_eq!(pages(&[(0, 100), (100, 5000), (9000, 10)]), [(0, 0, 3)]);
        assert_eq!(pages(&[(8192, 10), (0, 10)]), [(0, 2, 3), (0, 0, 1)], "in the order of the plan");
        assert_eq!(pages(&[(SEGMENT_BYTES - 10, 20)]), [(0, 16383, 16384), (SEGMENT_BYTES, 0, 1)]);
        assert_eq!(pages(&[(7, 0)]), []);
        assert!(runs(&version, &[(SEGMENT_BYTES, 8193)]).is_err());
    }
}
