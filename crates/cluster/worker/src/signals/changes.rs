//! What left the tiers and what came into them, in order, for schedules that count on its being there.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use forebay_block_store::Change;
use forebay_protocol::{Departed, RUNS_MAX};
use forebay_types::{PageRun, SegmentId};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Changes that are remembered; a follower that comes later than that has missed some.
const KEPT_MAX: usize = 65_536;
/// So long after somebody has asked, what changes is written down.
const FOLLOWED_FOR: Duration = Duration::from_secs(120);

/// Runs of pages that left both tiers, or came from outside, while somebody follows.
pub(crate) struct Changes {
    log: Mutex<Log>,
    /// The number of the next one.
    next: watch::Sender<u64>,
}

#[derive(Default)]
struct Log {
    /// The number of the first of `changes`.
    first: u64,
    changes: VecDeque<(SegmentId, PageRun, Change)>,
    followed: Option<Instant>,
    /// The number up to which a follower was told.
    told: u64,
}

impl Log {
    fn end(&self) -> u64 {
        self.first + self.changes.len() as u64
    }

    /// The last change, if this one is part of it: pages come a few at a time. What was told to somebody stays as it was.
    fn grows(&mut self, segment: SegmentId, run: PageRun, change: Change) -> bool {
        let is_told = self.told >= self.end();
        match self.changes.back_mut() {
            Some((of, last, was)) if !is_told && (*of, *was, last.end()) == (segment, change, run.start) => {
                *last = PageRun::new(last.start, run.end());
                true
            }
            _ => false,
        }
    }
}

impl Default for Changes {
    fn default() -> Self {
        // Numbers of another process are none of this one's.
        let first = u64::from(forebay_runtime::random::<u32>()) << 31;
        Self { log: Mutex::new(Log { first, ..Log::default() }), next: watch::Sender::new(first) }
    }
}

impl Changes {
    /// Pages are in no tier any more, or in one that were in none.
    pub(crate) fn add(&self, segment: SegmentId, run: PageRun, change: Change) {
        let mut log = self.log.lock();
        if log.followed.is_none_or(|asked| asked.elapsed() >= FOLLOWED_FOR) {
            // Who asks after that has missed something.
            if log.followed.take().is_some() {
                log.first = log.end() + 1;
                log.changes.clear();
                self.next.send_replace(log.first);
            }
            return;
        }
        if log.grows(segment, run, change) {
            return;
        }
        if log.changes.len() == KEPT_MAX {
            log.changes.pop_front();
            log.first += 1;
        }
        log.changes.push_back((segment, run, change));
        assert!(log.changes.len() <= KEPT_MAX, "the log of what changed is bounded");
        self.next.send_replace(log.end());
    }

    /// What changed since `since`, as soon as there is something, or nothing after `within`.
    pub(crate) async fn since(&self, since: u64, within: Duration) -> Departed {
        self.log.lock().followed = Some(forebay_runtime::now());
        let mut next = self.next.subscribe();
        let news = next.wait_for(|next| *next != since);
        // No news are an answer, too.
        let _ = forebay_runtime::time::timeout(within, news).await;
        let mut log = self.log.lock();
        log.followed = Some(forebay_runtime::now());
        let lost = !(log.first..=log.end()).contains(&since);
        let from = if lost { log.changes.len() } else { (since - log.first) as usize };
        assert!(from <= log.changes.len(), "an answer begins within the log");
        let end = (from + RUNS_MAX).min(log.changes.len());
        let of = |wanted| {
            let some = log.changes.range(from..end).filter(move |(_, _, change)| *change == wanted);
            some.map(|(segment, run, _)| (*segment, *run)).collect()
        };
        let (runs, came) = (of(Change::Left), of(Change::Came));
        log.told = log.told.max(log.first + end as u64);
        Departed { next: log.first + end as u64, lost, runs, came }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LATER: Duration = Duration::from_secs(20);

    fn run(number: u32) -> (SegmentId, PageRun) {
        (SegmentId(number.into()), PageRun::new(number, number + 1))
    }

    fn left(changes: &Changes, number: u32) {
        changes.add(run(number).0, run(number).1, Change::Left);
    }

    fn quiet(next: u64) -> Departed {
        Departed { next, ..Departed::default() }
    }

    #[tokio::test]
    async fn a_follower_hears_of_everything_once_and_in_order() {
        let changes = Changes::default();
        left(&changes, 1);
        let first = changes.since(0, SOON).await;
        assert_eq!((first.lost, first.runs), (true, vec![]), "it has missed what left before");
        assert_eq!(changes.since(first.next, SOON).await, quiet(first.next));
        let (heard, ()) = tokio::join!(changes.since(first.next, LATER), async { left(&changes, 2) });
        assert_eq!((heard.lost, &heard.runs[..]), (false, &[run(2)][..]));
        (3..6).for_each(|number| left(&changes, number));
        changes.add(run(4).0, run(4).1, Change::Came);
        let more = changes.since(heard.next, LATER).await;
        assert_eq!((more.lost, more.runs, more.came), (false, vec![run(3), run(4), run(5)], vec![run(4)]));
        assert_eq!(changes.since(more.next, SOON).await, quiet(more.next));
        assert!(changes.since(more.next + 7, SOON).await.lost, "that was another process");
    }

    #[tokio::test]
    async fn what_comes_piece_by_piece_is_told_together_unless_some_of_it_was_told() {
        let changes = Changes::default();
        let segment = SegmentId(9);
        let came = |start| changes.add(segment, PageRun::new(start, start + 64), Change::Came);
        let since = changes.since(0, SOON).await.next;
        (0..4).for_each(|piece| came(piece * 64));
        let first = changes.since(since, LATER).await;
        assert_eq!((first.next, first.came), (since + 1, vec![(segment, PageRun::new(0, 256))]));
        came(256);
        changes.add(segment, PageRun::new(320, 330), Change::Left);
        came(330);
        let more = changes.since(first.next, LATER).await;
        let runs = |runs: &[(u32, u32)]| runs.iter().map(|(from, to)| (segment, PageRun::new(*from, *to))).collect::<Vec<_>>();
        assert_eq!((more.came, more.runs), (runs(&[(256, 320), (330, 394)]), runs(&[(320, 330)])));
    }

    #[tokio::test]
    async fn who_follows_too_slowly_is_told_so() {
        let changes = Changes::default();
        let since = changes.since(0, SOON).await.next;
        (0..KEPT_MAX as u32 + 5).for_each(|number| left(&changes, number % 9));
        let late = changes.since(since, SOON).await;
        assert!(late.lost && late.runs.is_empty());
        assert!(changes.log.lock().changes.len() <= KEPT_MAX);
        assert_eq!(changes.since(late.next, SOON).await, quiet(late.next));
    }
}
