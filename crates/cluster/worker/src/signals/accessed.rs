//! Which objects are read and written, one by one, while somebody records that.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_protocol::{ACCESSES_MAX, AccessMade, AccessWay, Accesses, WantedAccesses};
use forebay_transport::unix_now;
use forebay_types::{Key, MountId, OperationId, RouteKey};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Accesses that are remembered; who asks later than that has missed some. Their keys are those of versions that are known anyway, or
/// have 64 MiB together at worst.
const KEPT_MAX: usize = 65_536;
/// So long after somebody has asked, accesses are written down.
const RECORDED_FOR: Duration = Duration::from_secs(20);
/// With so many to tell, an answer waits no longer.
const MANY: u64 = ACCESSES_MAX as u64 / 2;
/// Who waits hears of accesses so many at a time.
const HEARD: u64 = 512;

/// The last accesses to objects, while somebody records them.
pub(crate) struct Accessed {
    /// Whether anything is written down: all that readers look at where nothing is.
    is_on: AtomicBool,
    log: Mutex<Log>,
    /// The number of the next one, now and then.
    next: watch::Sender<u64>,
}

struct Log {
    /// The number of the first of `made`.
    first: u64,
    made: VecDeque<(Instant, AccessMade)>,
    /// Of so many objects the accesses to one are written down: the fewest that anybody asks for.
    one_in: u32,
    asked: Option<Instant>,
}

/// An access as it is made.
pub(crate) struct Made<'a> {
    pub(crate) operation: Option<OperationId>,
    pub(crate) object: (MountId, &'a Key),
    /// First byte, counted from the object's start.
    pub(crate) start: u64,
    /// Of each.
    pub(crate) bytes: u64,
    pub(crate) times: u32,
    pub(crate) way: AccessWay,
}

impl Default for Accessed {
    fn default() -> Self {
        // Numbers of another process are none of this one's.
        let first = unix_now() << 31;
        let log = Log { first, made: VecDeque::new(), one_in: u32::MAX, asked: None };
        Self { is_on: AtomicBool::new(false), log: Mutex::new(log), next: watch::Sender::new(first) }
    }
}

impl Log {
    fn end(&self) -> u64 {
        self.first + self.made.len() as u64
    }

    /// Forgets all, so that who asks after that has missed something.
    fn stop(&mut self) {
        self.first = self.end() + 1;
        (self.made, self.one_in, self.asked) = (VecDeque::new(), u32::MAX, None);
    }
}

impl Accessed {
    /// Whether somebody records, so that what costs something to say is said.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// An object was read or written.
    pub(crate) fn made(&self, made: &Made<'_>) {
        if !self.is_on() {
            return;
        }
        let now = forebay_runtime::now();
        let mut log = self.log.lock();
        if log.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= RECORDED_FOR) {
            self.is_on.store(false, Relaxed);
            log.stop();
            self.next.send_replace(log.first);
            return;
        }
        let (mount, key) = made.object;
        if !is_of(mount, key, log.one_in) {
            return;
        }
        if log.made.len() == KEPT_MAX {
            log.made.pop_front();
            log.first += 1;
        }
        let &Made { operation, start, bytes, times, way, .. } = made;
        let access = AccessMade { ago: Duration::ZERO, operation, mount, key: key.clone(), start, bytes, times, way };
        log.made.push_back((now, access));
        assert!(log.made.len() <= KEPT_MAX, "the log of accesses is bounded");
        let end = log.end();
        if end.is_multiple_of(HEARD) {
            self.next.send_replace(end);
        }
    }

    /// Accesses since `since`, as soon as there are many, or those that there are after `within`.
    pub(crate) async fn since(&self, wanted: WantedAccesses, within: Duration) -> Accesses {
        let WantedAccesses { since, one_in, .. } = wanted;
        let waits = self.ask(since, one_in);
        if waits {
            let mut next = self.next.subscribe();
            // It is behind the log's end mostly: who has heard of all waits as well.
            let many = next.wait_for(|next| next.saturating_sub(since) >= MANY);
            // Few are an answer, too.
            let _ = forebay_runtime::time::timeout(within, many).await;
            self.ask(since, one_in);
        }
        self.told(since, one_in)
    }

    /// Somebody records from now on; gives whether there is nothing to tell at once.
    fn ask(&self, since: u64, one_in: u32) -> bool {
        let mut log = self.log.lock();
        log.asked = Some(forebay_runtime::now());
        log.one_in = log.one_in.min(one_in);
        self.is_on.store(true, Relaxed);
        (log.first..=log.end()).contains(&since) && log.end() - since < MANY
    }

    fn told(&self, since: u64, one_in: u32) -> Accesses {
        let now = forebay_runtime::now();
        let log = self.log.lock();
        // Numbers that are further away are another process's.
        let lost = log.first.checked_sub(since).filter(|lost| *lost < 1 << 31).unwrap_or(0);
        let from = since.checked_sub(log.first).filter(|from| *from <= log.made.len() as u64);
        let is_first = from.is_none() && lost == 0;
        let from = if is_first { log.made.len() } else { from.unwrap_or(0) as usize };
        let told = log.made.range(from..).take(ACCESSES_MAX);
        let next = log.first + (from + told.len()) as u64;
        assert!(next <= log.end(), "an answer ends within the log");
        let made = told.filter(|(_, access)| is_of(access.mount, &access.key, one_in));
        let made = made.map(|(at, access)| AccessMade { ago: now.saturating_duration_since(*at), ..access.clone() });
        Accesses { next, lost, made: made.collect() }
    }
}

/// Whether an object is the one of so many. What is one of more is one of fewer, too.
fn is_of(mount: MountId, key: &Key, one_in: u32) -> bool {
    one_in <= 1 || RouteKey::of(mount, key, 0).0 <= u64::MAX / u64::from(one_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LATER: Duration = Duration::from_secs(20);

    fn key(number: usize) -> Key {
        Key::new(format!("k{number}")).unwrap()
    }

    fn read(accessed: &Accessed, number: usize) {
        let (operation, key) = (Some(OperationId(1)), key(number));
        let object = (MountId(1), &key);
        accessed.made(&Made { operation, object, start: 1, bytes: 2, times: 1, way: AccessWay::Answered });
    }

    fn wanted(since: u64, one_in: u32) -> WantedAccesses {
        WantedAccesses { since, one_in, within_ms: 0 }
    }

    fn keys(accesses: &Accesses) -> Vec<Key> {
        accesses.made.iter().map(|access| access.key.clone()).collect()
    }

    #[tokio::test]
    async fn nothing_is_written_down_until_somebody_asks() {
        let accessed = Accessed::default();
        read(&accessed, 1);
        assert!(!accessed.is_on() && accessed.log.lock().made.is_empty());
        let first = accessed.since(wanted(7, 1), SOON).await;
        assert_eq!((first.lost, &first.made[..]), (0, &[][..]));
        (2..5).for_each(|number| read(&accessed, number));
        let some = accessed.since(wanted(first.next, 1), SOON).await;
        assert_eq!((some.lost, keys(&some)), (0, vec![key(2), key(3), key(4)]));
        let access = &some.made[0];
        assert_eq!((access.start, access.bytes, access.operation), (1, 2, Some(OperationId(1))));
        assert!(some.made[0].ago >= SOON, "it waited for more");
        let began = forebay_runtime::now();
        assert_eq!(accessed.since(wanted(some.next, 1), SOON).await.made, []);
        assert!(began.elapsed() >= SOON, "who has heard of all waits for more");
    }

    #[tokio::test]
    async fn an_answer_with_many_does_not_wait_and_none_is_larger_than_a_message() {
        let accessed = Accessed::default();
        let mut next = accessed.since(wanted(7, 1), SOON).await.next;
        (0..ACCESSES_MAX + 9).for_each(|number| read(&accessed, number % 9));
        let mut told = 0;
        for most in [ACCESSES_MAX, 9] {
            let some = accessed.since(wanted(next, 1), if most == 9 { SOON } else { LATER }).await;
            assert!(some.made.len() <= most && some.lost == 0);
            (told, next) = (told + some.made.len(), some.next);
        }
        assert_eq!(told, ACCESSES_MAX + 9);
    }

    #[tokio::test]
    async fn who_asks_too_slowly_is_told_how_many_are_lost() {
        let accessed = Accessed::default();
        let next = accessed.since(wanted(7, 1), SOON).await.next;
        (0..KEPT_MAX + 5).for_each(|number| read(&accessed, number % 9));
        let late = accessed.since(wanted(next, 1), LATER).await;
        assert_eq!((late.lost, late.made.len()), (5, ACCESSES_MAX));
        assert_eq!(late.made[0].key, key(5), "the oldest that there is");
        assert_eq!(accessed.log.lock().made.len(), KEPT_MAX);
        let on = accessed.since(wanted(late.next, 1), LATER).await;
        assert_eq!((on.lost, on.made.len()), (0, ACCESSES_MAX));
    }

    #[tokio::test]
    async fn one_object_of_so_many_is_told_with_all_of_its_accesses() {
        let accessed = Accessed::default();
        let next = accessed.since(wanted(7, 4), SOON).await.next;
        for _ in 0..2 {
            (0..1_000).for_each(|number| read(&accessed, number));
        }
        let some = accessed.since(wanted(next, 4), SOON).await;
        let told = keys(&some);
        assert!((150..350).contains(&(told.len() / 2)), "{}", told.len());
        assert_eq!(told[..told.len() / 2], told[told.len() / 2..], "the same ones each time");
        let fewer = accessed.since(wanted(next, 40), SOON).await;
        assert!(fewer.made.len() < told.len() && keys(&fewer).iter().all(|key| told.contains(key)));
    }
}
