//! What left the tiers, in order, for schedules that count on its being there.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use forebay_protocol::{Departed, RUNS_MAX};
use forebay_types::{PageRun, SegmentId};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Runs that are remembered; a follower that comes later than that has missed some.
const KEPT_MAX: usize = 65_536;
/// So long after somebody has asked, what leaves is written down.
const FOLLOWED_FOR: Duration = Duration::from_secs(120);

/// Runs of pages that left both tiers, while somebody follows.
pub(crate) struct Gone {
    log: Mutex<Log>,
    /// The number of the next one.
    next: watch::Sender<u64>,
}

#[derive(Default)]
struct Log {
    /// The number of the first of `runs`.
    first: u64,
    runs: VecDeque<(SegmentId, PageRun)>,
    followed: Option<Instant>,
}

impl Default for Gone {
    fn default() -> Self {
        // Numbers of another process are none of this one's.
        let first = u64::from(forebay_runtime::random::<u32>()) << 31;
        Self { log: Mutex::new(Log { first, ..Log::default() }), next: watch::Sender::new(first) }
    }
}

impl Gone {
    /// Pages are in no tier any more.
    pub(crate) fn left(&self, segment: SegmentId, run: PageRun) {
        let mut log = self.log.lock();
        if log.followed.is_none_or(|asked| asked.elapsed() >= FOLLOWED_FOR) {
            // Who asks after that has missed something.
            log.first += log.runs.len() as u64 + 1;
            log.runs.clear();
            self.next.send_replace(log.first);
            return;
        }
        if log.runs.len() == KEPT_MAX {
            log.runs.pop_front();
            log.first += 1;
        }
        log.runs.push_back((segment, run));
        assert!(log.runs.len() <= KEPT_MAX, "the log of what left is bounded");
        self.next.send_replace(log.first + log.runs.len() as u64);
    }

    /// What left since `since`, as soon as there is something, or nothing after `within`.
    pub(crate) async fn since(&self, since: u64, within: Duration) -> Departed {
        self.log.lock().followed = Some(forebay_runtime::now());
        let mut next = self.next.subscribe();
        let news = next.wait_for(|next| *next != since);
        // No news are an answer, too.
        let _ = forebay_runtime::time::timeout(within, news).await;
        let mut log = self.log.lock();
        log.followed = Some(forebay_runtime::now());
        let end = log.first + log.runs.len() as u64;
        let lost = !(log.first..=end).contains(&since);
        let from = if lost { log.runs.len() } else { (since - log.first) as usize };
        assert!(from <= log.runs.len(), "an answer begins within the log");
        let runs: Vec<_> = log.runs.range(from..).take(RUNS_MAX).copied().collect();
        Departed { next: end - log.runs.len() as u64 + (from + runs.len()) as u64, lost, runs }
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

    #[tokio::test]
    async fn a_follower_hears_of_everything_once_and_in_order() {
        let gone = Gone::default();
        gone.left(run(1).0, run(1).1);
        let first = gone.since(0, SOON).await;
        assert_eq!((first.lost, first.runs), (true, vec![]), "it has missed what left before");
        let quiet = gone.since(first.next, SOON).await;
        assert_eq!(quiet, Departed { next: first.next, lost: false, runs: vec![] });
        let (heard, ()) = tokio::join!(gone.since(first.next, LATER), async { gone.left(run(2).0, run(2).1) });
        assert_eq!((heard.lost, &heard.runs[..]), (false, &[run(2)][..]));
        (3..6).for_each(|number| gone.left(run(number).0, run(number).1));
        let more = gone.since(heard.next, LATER).await;
        assert_eq!((more.lost, more.runs), (false, vec![run(3), run(4), run(5)]));
        assert_eq!(gone.since(more.next, SOON).await.runs, []);
        assert!(gone.since(more.next + 7, SOON).await.lost, "that was another process");
    }

    #[tokio::test]
    async fn who_follows_too_slowly_is_told_so() {
        let gone = Gone::default();
        let since = gone.since(0, SOON).await.next;
        (0..KEPT_MAX as u32 + 5).for_each(|number| gone.left(run(number % 9).0, run(number % 9).1));
        let late = gone.since(since, SOON).await;
        assert!(late.lost && late.runs.is_empty());
        assert!(gone.log.lock().runs.len() <= KEPT_MAX);
        assert_eq!(gone.since(late.next, SOON).await, Departed { next: late.next, lost: false, runs: vec![] });
    }
}
