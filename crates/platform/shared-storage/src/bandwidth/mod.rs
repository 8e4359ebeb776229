//! The bandwidth bound: how many bytes may be read, by whom, and when.

mod begins;
mod bucket;
mod meter;
mod outstanding;
mod yielding;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use forebay_runtime::time::{Instant, Sleep};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::request::Class;
use begins::Begins;
use bucket::Bucket;
use meter::Meter;
use outstanding::Awaited;

pub(crate) use outstanding::Outstanding;
pub(crate) use yielding::{DemandGuard, Yielding};

/// How long readers count as held back after one of them had to wait.
const HELD_BACK: Duration = Duration::from_secs(1);
/// After so long without a byte that came or is waited for, nobody reads any more.
const STILL: Duration = Duration::from_millis(100);

/// Shares the bound out among the connections of a mount: demand before prefetch, and in turn within each.
pub(crate) struct Limiter {
    started: Instant,
    state: Mutex<State>,
    awaited: [Awaited; 3],
    /// Told when something begins to be read.
    begins: Begins,
}

struct State {
    /// None without a bound.
    bucket: Option<Bucket>,
    filled_at: Instant,
    flows: [Flow; 3],
    /// Who waits, demand and the rest; only the first of all has a timer, the others are woken when their turn comes.
    queues: [VecDeque<(u64, Waker)>; 2],
    next_ticket: u64,
}

/// What is read of one class.
struct Flow {
    meter: Meter,
    held_back_at: Option<Instant>,
    read_at: Instant,
    waiting: usize,
}

impl Flow {
    fn of(class: Class) -> usize {
        match class {
            Class::Demand => 0,
            Class::Prefetch => 1,
            Class::Background => 2,
        }
    }
}

/// Where a class waits: background work is let in so sparsely that it needs no place behind prefetch.
fn line(class: Class) -> usize {
    usize::from(class != Class::Demand)
}

impl Limiter {
    /// A limiter of this many bytes a second; none is no bound.
    pub(crate) fn new(bytes_per_sec: Option<u64>, burst_bytes: u64) -> Arc<Self> {
        let now = forebay_runtime::time::instant();
        let state = State {
            bucket: bytes_per_sec.map(|rate| Bucket::new(rate, burst_bytes)),
            filled_at: now,
            flows: [(); 3].map(|()| Flow { meter: Meter::default(), held_back_at: None, read_at: now, waiting: 0 }),
            queues: [VecDeque::new(), VecDeque::new()],
            next_ticket: 0,
        };
        Arc::new(Self { started: now, state: Mutex::new(state), awaited: Default::default(), begins: Begins::default() })
    }

    /// Another bound, from now on.
    pub(crate) fn set(&self, bytes_per_sec: Option<u64>, burst_bytes: u64) {
        let mut state = self.state.lock();
        state.fill(forebay_runtime::time::instant());
        match (bytes_per_sec, &mut state.bucket) {
            (Some(rate), Some(bucket)) => bucket.set(rate, burst_bytes),
            (rate, bucket) => *bucket = rate.map(|rate| Bucket::new(rate, burst_bytes)),
        }
        // Whoever waits looks at the new bound; without one they all go on.
        state.queues.iter().flatten().for_each(|(_, waker)| waker.wake_by_ref());
    }

    /// A reader's place at the bound.
    pub(crate) fn turn(self: &Arc<Self>, class: Class) -> Turn {
        Turn { limiter: Arc::clone(self), class, ticket: None, sleep: None }
    }

    /// Bytes that a read will bring, until they have come or it is given up.
    pub(crate) fn outstanding(&self, class: Class, bytes: u64) -> Outstanding {
        let outstanding = self.awaited[Flow::of(class)].begin(bytes);
        self.begins.tell();
        outstanding
    }

    /// See [`crate::Storage::tell_of_reads`].
    pub(crate) fn tell_of_reads(&self, waits: Arc<Notify>) {
        self.begins.telling(waits);
    }

    /// Whether nothing is to come, and nothing came for a while.
    pub(crate) fn is_still(&self) -> bool {
        // The time is that of the look: who reads behind it tells of that.
        let state = self.state.lock();
        let now = forebay_runtime::time::instant();
        self.awaited.iter().all(|awaited| awaited.bytes() == 0) && state.flows.iter().all(|flow| now - flow.read_at > STILL)
    }

    /// What would be read in a second of one class were there no bound: what was read in the last one, and, when somebody had to wait, what
    /// they wait for, at least as much again.
    pub(crate) fn wanted_bytes_per_sec(&self, class: Class) -> u64 {
        let now = forebay_runtime::time::instant();
        let outstanding = self.awaited[Flow::of(class)].bytes();
        let mut state = self.state.lock();
        let flow = &mut state.flows[Flow::of(class)];
        if outstanding == 0 && now - flow.read_at > STILL {
            return 0;
        }
        let rate = flow.meter.rate(now - self.started);
        let held_back = flow.waiting > 0 || flow.held_back_at.is_some_and(|at| now - at < HELD_BACK);
        rate.saturating_add(if held_back && outstanding > 0 { outstanding.max(rate) } else { 0 })
    }
}

impl State {
    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled_at);
        self.filled_at = now;
        if let Some(bucket) = &mut self.bucket {
            bucket.pass(passed);
        }
    }

    /// Who is next, whatever the class.
    fn first(&self) -> Option<&(u64, Waker)> {
        self.queues.iter().find_map(VecDeque::front)
    }

    fn wake_first(&self) {
        if let Some((_, waker)) = self.first() {
            waker.wake_by_ref();
        }
    }

    fn leave(&mut self, class: Class, ticket: u64) {
        self.queues[line(class)].retain(|(waiting, _)| *waiting != ticket);
        self.flows[Flow::of(class)].waiting -= 1;
    }
}

/// A reader's place at the bound; it gives its place up when dropped.
pub(crate) struct Turn {
    limiter: Arc<Limiter>,
    class: Class,
    ticket: Option<u64>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Turn {
    /// Whether the reader waits for its turn.
    pub(crate) fn is_waiting(&self) -> bool {
        self.ticket.is_some()
    }

    /// How many bytes may be read now: at least one, at most `want`. What isn't read must be given back.
    pub(crate) fn poll_take(&mut self, want: u64, cx: &mut Context<'_>) -> Poll<u64> {
        loop {
            let wait = {
                let mut guard = self.limiter.state.lock();
                let state = &mut *guard;
                let now = forebay_runtime::time::instant();
                state.fill(now);
                // Those of the own class who came before, and all demand before prefetch.
                let is_first = match self.ticket {
                    Some(ticket) => state.first().is_some_and(|(first, _)| *first == ticket),
                    None => state.queues[..=line(self.class)].iter().all(VecDeque::is_empty),
                };
                let granted = match &mut state.bucket {
                    None => Some(want),
                    Some(bucket) if is_first && bucket.available() >= want.min(bucket.portion()) => {
                        let bytes = want.min(bucket.available());
                        bucket.take(bytes);
                        Some(bytes)
                    }
                    Some(_) => None,
                };
                if let Some(bytes) = granted {
                    if let Some(ticket) = self.ticket.take() {
                        state.leave(self.class, ticket);
                        state.wake_first();
                    }
                    self.sleep = None;
                    return Poll::Ready(bytes);
                }
                let flow = &mut state.flows[Flow::of(self.class)];
                flow.held_back_at = Some(now);
                let queue = &mut state.queues[line(self.class)];
                match self.ticket {
                    Some(ticket) => {
                        let place = queue.iter_mut().find(|(waiting, _)| *waiting == ticket);
                        place.expect("tickets are in the queue").1.clone_from(cx.waker());
                    }
                    None => {
                        self.ticket = Some(state.next_ticket);
                        queue.push_back((state.next_ticket, cx.waker().clone()));
                        flow.waiting += 1;
                        state.next_ticket += 1;
                    }
                }
                match &state.bucket {
                    Some(bucket) if is_first => bucket.wait_for(want.min(bucket.portion())).map(|wait| now + wait),
                    _ => None,
                }
            };
            // Somebody wakes those who aren't first, and a new bound wakes all.
            let Some(when) = wait else { return Poll::Pending };
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(forebay_runtime::time::sleep_until(when)));
            sleep.as_mut().reset(when);
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Bytes were read.
    pub(crate) fn read(&self, bytes: u64) {
        let mut state = self.limiter.state.lock();
        let now = forebay_runtime::time::instant();
        let flow = &mut state.flows[Flow::of(self.class)];
        let was_still = now - flow.read_at > STILL;
        flow.read_at = now;
        flow.meter.add(now - self.limiter.started, bytes);
        drop(state);
        if was_still {
            self.limiter.begins.tell();
        }
    }

    /// Puts back what was granted and not read.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut state = self.limiter.state.lock();
        if let Some(bucket) = &mut state.bucket {
            bucket.give_back(bytes);
            state.wake_first();
        }
    }

    /// As [`Self::poll_take`], for readers that aren't sockets.
    pub(crate) async fn take(&mut self, want: u64) -> u64 {
        std::future::poll_fn(|cx| self.poll_take(want, cx)).await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let mut state = self.limiter.state.lock();
            state.leave(self.class, ticket);
            state.wake_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(turn: &mut Turn, mut bytes: u64) {
        while bytes > 0 {
            bytes -= turn.take(bytes.min(64 << 10)).await;
        }
    }

    #[tokio::test]
    async fn demand_goes_before_prefetch() {
        let limiter = Limiter::new(Some(10_000_000), 0);
        read(&mut limiter.turn(Class::Demand), 64 << 10).await;
        let began = forebay_runtime::time::instant();
        let readers = [Class::Prefetch, Class::Demand, Class::Prefetch, Class::Demand].map(|class| {
            let mut turn = limiter.turn(class);
            async move {
                read(&mut turn, 500_000).await;
                (class, began.elapsed())
            }
        });
        let ends = futures::future::join_all(readers).await;
        let last = |class| ends.iter().filter(|(of, _)| *of == class).map(|(_, end)| end.as_secs_f64()).fold(0.0, f64::max);
        assert!(last(Class::Demand) < 0.75 * last(Class::Prefetch), "{ends:?}");
        assert!(last(Class::Prefetch) > 0.185, "{ends:?}");
    }

    #[tokio::test]
    async fn background_is_served_nothing_before_demand() {
        let limiter = Limiter::new(Some(10_000_000), 0);
        read(&mut limiter.turn(Class::Demand), 64 << 10).await;
        let served = std::cell::Cell::new(0);
        let background = async {
            let mut turn = limiter.turn(Class::Background);
            for _ in 0..1_000 {
                served.set(served.get() + turn.take(64 << 10).await);
            }
        };
        let demand = async { read(&mut limiter.turn(Class::Demand), 1_000_000).await };
        tokio::select! {
            () = background => unreachable!("it takes seconds"),
            () = demand => {}
        }
        assert!(served.get() <= 50_000, "{} of a million", served.get());
    }

    #[tokio::test]
    async fn a_new_bound_counts_at_once() {
        let limiter = Limiter::new(Some(0), 0);
        let mut turn = limiter.turn(Class::Demand);
        read(&mut turn, 64 << 10).await;
        let began = forebay_runtime::time::instant();
        let change = async {
            forebay_runtime::time::sleep(Duration::from_millis(100)).await;
            limiter.set(Some(1_000_000), 0);
            forebay_runtime::time::sleep(Duration::from_millis(100)).await;
            limiter.set(None, 0);
        };
        tokio::join!(read(&mut turn, 100_000_000), change);
        assert!((0.2..5.0).contains(&began.elapsed().as_secs_f64()), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_reader_that_goes_lets_the_next_one_in() {
        let limiter = Limiter::new(Some(100_000), 0);
        read(&mut limiter.turn(Class::Demand), 64 << 10).await;
        let mut gone = limiter.turn(Class::Demand);
        let waits = std::future::poll_fn(|cx| Poll::Ready(gone.poll_take(4 << 10, cx).is_pending())).await;
        assert!(waits && gone.is_waiting(), "there was nothing to take");
        let mut next = limiter.turn(Class::Prefetch);
        let reading = forebay_runtime::spawn(async move { read(&mut next, 8 << 10).await });
        forebay_runtime::time::sleep(Duration::from_millis(1)).await;
        drop(gone);
        forebay_runtime::time::timeout(Duration::from_secs(10), reading).await.expect("its turn has come").unwrap();
    }

    #[tokio::test]
    async fn demand_is_what_comes_and_what_is_waited_for() {
        let limiter = Limiter::new(Some(1_000_000), 0);
        let outstanding = limiter.outstanding(Class::Demand, 30_000_000);
        let mut turn = limiter.turn(Class::Demand);
        assert_eq!(limiter.wanted_bytes_per_sec(Class::Demand), 0, "nobody has to wait yet");
        let mut read = 0;
        while read < 150_000 {
            let bytes = turn.take(64 << 10).await;
            turn.read(bytes);
            outstanding.arrived(bytes);
            read += bytes;
        }
        let demand = limiter.wanted_bytes_per_sec(Class::Demand);
        assert!((29_000_000..=30_000_000).contains(&demand), "{demand}");
        drop(outstanding);
        assert!(limiter.wanted_bytes_per_sec(Class::Demand) <= read);
        assert_eq!(limiter.wanted_bytes_per_sec(Class::Background), 0);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_no_demand() {
        for class in [Class::Prefetch, Class::Background] {
            let limiter = Limiter::new(Some(1_000_000), 0);
            let outstanding = limiter.outstanding(class, 30_000_000);
            let mut turn = limiter.turn(class);
            let mut read = 0;
            while read < 150_000 {
                let bytes = turn.take(64 << 10).await;
                turn.read(bytes);
                outstanding.arrived(bytes);
                read += bytes;
            }
            let wanted = limiter.wanted_bytes_per_sec(class);
            assert!((29_000_000..=30_000_000).contains(&wanted), "{wanted} of {class:?}");
            let others = [Class::Demand, Class::Prefetch, Class::Background].into_iter().filter(|other| *other != class);
            assert!(others.map(|other| limiter.wanted_bytes_per_sec(other)).all(|wanted| wanted == 0), "{class:?}");
        }
    }
}
