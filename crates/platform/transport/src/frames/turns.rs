//! Whose turn it is to take of what arrives, where many large payloads arrive at once.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::task::ready;

use forebay_runtime::is_simulated;
use tokio::sync::{Semaphore, SemaphorePermit};

/// What of a payload is taken in one turn: some 100 us, which is what small requests wait for those who take.
pub(crate) const TURN_BYTES: usize = 256 << 10;

/// Those who take at a time, of all connections of the process: one a core. The others wait here, in the order of their coming,
/// and not before small requests in a runtime's queue.
static PLACES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

thread_local! {
    /// Bytes that were taken on this thread since it looked at sockets, of all connections. A runtime looks at them again after sixty tasks
    /// at the latest, and where many connections bring a little each, each of these took what it found: some MiB, one small piece after
    /// the other.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// The place of who takes, until this is dropped: after small requests that came meanwhile have been looked for, where much was taken.
pub(crate) struct Turn(#[expect(dead_code, reason = "kept to be dropped")] Option<SemaphorePermit<'static>>);

/// Takes something in turn. Who finds that nothing has come keeps nobody waiting.
pub(crate) async fn in_turn<T>(take: impl Future<Output = T>) -> (T, Turn) {
    if is_simulated() {
        return (take.await, Turn(None));
    }
    let mut take = pin!(take);
    let mut queued: Option<Pin<Box<dyn Future<Output = SemaphorePermit<'static>> + Send>>> = None;
    std::future::poll_fn(|context| {
        let place = match (&mut queued, PLACES.try_acquire()) {
            (None, Ok(place)) => place,
            (_, free) => {
                // One that became free belongs to who waits for longest.
                drop(free);
                let place = ready!(queued.get_or_insert_with(|| Box::pin(place())).as_mut().poll(context));
                queued = None;
                place
            }
        };
        take.as_mut().poll(context).map(|taken| (taken, Turn(Some(place))))
    })
    .await
}

/// Lets others have their turn once a turn's bytes were taken, by whomever: sockets are looked at before this goes on. `own` is what the
/// connection has taken, by which worlds that are simulated go, so that none depends on the one before it.
pub(crate) async fn give_way(own: &mut usize, bytes: usize) {
    let taken = bytes + if is_simulated() { *own } else { TAKEN.get() };
    let left = if taken < TURN_BYTES { taken } else { 0 };
    if is_simulated() {
        *own = left;
    } else {
        TAKEN.set(left);
    }
    if left == 0 {
        tokio::task::yield_now().await;
    }
}

async fn place() -> SemaphorePermit<'static> {
    PLACES.acquire().await.expect("nobody closes it")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Duration;

    use forebay_runtime::time::timeout;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn who_waits_for_what_comes_has_no_place() {
        let all = PLACES.available_permits();
        let silent: Vec<_> = (0..10 * all).map(|_| tokio::spawn(in_turn(std::future::pending::<()>()))).collect();
        for n in 0..100 {
            assert_eq!(timeout(Duration::from_secs(5), in_turn(async { n })).await.unwrap().0, n);
        }
        silent.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn all_come_to_their_turn_when_no_place_is_free() {
        let all = PLACES.acquire_many(std::thread::available_parallelism().map_or(1, usize::from) as u32).await.unwrap();
        let waiting: Vec<_> = (0..50).map(|n| tokio::spawn(in_turn(async move { n }))).collect();
        tokio::task::yield_now().await;
        assert!(waiting.iter().all(|task| !task.is_finished()), "no place is free");
        drop(all);
        for (n, task) in waiting.into_iter().enumerate() {
            assert_eq!(timeout(Duration::from_secs(5), task).await.unwrap().unwrap().0, n);
        }
    }

    #[tokio::test]
    async fn small_requests_are_looked_for_however_many_connections_bring_a_little_each() {
        const LITTLE: usize = TURN_BYTES / 4;
        let (mut asks, asked) = UnixStream::pair().unwrap();
        asked.set_nonblocking(true).unwrap();
        let mut asked = tokio::net::UnixStream::from_std(asked).unwrap();
        let taken = Arc::new(AtomicUsize::new(0));
        let take = |taken: Arc<AtomicUsize>| async move {
            let mut own = 0;
            loop {
                let (_, turn) = in_turn(async { taken.fetch_add(LITTLE, Relaxed) }).await;
                give_way(&mut own, LITTLE).await;
                drop(turn);
            }
        };
        let takers: Vec<_> = (0..200).map(|_| tokio::spawn(take(Arc::clone(&taken)))).collect();
        tokio::task::yield_now().await;
        let places = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..50 {
            let nothing = asked.try_read(&mut [0]);
            assert_eq!(nothing.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
            let before = taken.load(Relaxed);
            asks.write_all(&[1]).unwrap();
            timeout(Duration::from_secs(5), asked.read_exact(&mut [0])).await.unwrap().unwrap();
            let meanwhile = taken.load(Relaxed) - before;
            assert!(meanwhile <= (places + 2) * TURN_BYTES, "{meanwhile} bytes were taken before a small request was");
        }
        assert!(taken.load(Relaxed) > TURN_BYTES, "they go on meanwhile");
        takers.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
