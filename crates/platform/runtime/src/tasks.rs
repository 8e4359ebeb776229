//! What runs beside its caller.

use tokio::task::JoinHandle;

use crate::computing::spawn;
use crate::simulated::is_simulated;

/// Runs what blocks on a thread that is there for that.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    if is_simulated() { spawn(async move { work() }) } else { tokio::task::spawn_blocking(work) }
}

/// Tasks of the runtime that this is called in which have begun and not ended; none outside of one.
pub fn alive_tasks() -> Option<usize> {
    tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.metrics().num_alive_tasks())
}

/// How much later than others a thread has its turn that works behind them: about a quarter of a core that others want too.
const BEHIND: i32 = 5;

/// Runs what takes long and nobody waits for on a thread of its own, which gives way to all others; none where it panicked, or there
/// was no thread for it.
pub async fn run_behind<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if is_simulated() {
        return spawn(async move { work() }).await.ok();
    }
    let (done, result) = tokio::sync::oneshot::channel();
    // Threads of a pool can't be used: none of them may take its turn back without a right to it.
    let started = std::thread::Builder::new().name("behind".to_string()).spawn(move || {
        // Where it can't be, it is as quick as others.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BEHIND);
        // Who asked may be gone.
        let _ = done.send(work());
    });
    if started.is_ok() { result.await.ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_is_alive_until_it_ends() {
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let before = alive_tasks().unwrap();
        let task = spawn(ended);
        assert_eq!(alive_tasks(), Some(before + 1));
        end.send(()).unwrap();
        task.await.unwrap().unwrap();
        assert_eq!(alive_tasks(), Some(before));
        assert_eq!(std::thread::spawn(alive_tasks).join().unwrap(), None, "there is no runtime");
    }

    #[tokio::test]
    async fn what_runs_behind_gives_way_and_its_panic_is_told() {
        let priority = || rustix::process::getpriority_process(Some(rustix::thread::gettid()));
        let before = priority().unwrap();
        let behind = run_behind(priority).await.unwrap().unwrap();
        assert!(behind == BEHIND || before > BEHIND, "{behind}");
        assert_eq!(priority(), Ok(before), "nobody else does");
        assert_eq!(run_behind(|| panic!("a defect")).await, None::<()>);
    }
}
