//! Whose turn it is to take of what arrives, where many large payloads arrive at once.

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

async fn place() -> SemaphorePermit<'static> {
    PLACES.acquire().await.expect("nobody closes it")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_runtime::time::timeout;

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
}
