//! What the threads of an outbox meet by. In the models of loom it is loom's.

#[cfg(not(feature = "models"))]
pub(super) use parking_lot::Mutex;
#[cfg(not(feature = "models"))]
pub(super) use tokio::sync::Notify;

#[cfg(feature = "models")]
pub(super) use modelled::{Mutex, Notify};

/// A lock and a notice as the outbox uses them, with every order of the threads.
#[cfg(feature = "models")]
mod modelled {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    #[derive(Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no thread of a model panics")
        }
    }

    /// As tokio's: a notice to one is kept until somebody waits, one to all goes to those that wait.
    pub(crate) struct Notify(Mutex<Waiting>);

    #[derive(Default)]
    struct Waiting {
        kept: bool,
        told: u64,
        wakers: Vec<Waker>,
    }

    impl Notify {
        pub(crate) fn new() -> Self {
            Self(Mutex::default())
        }

        pub(crate) fn notify_one(&self) {
            let mut waiting = self.0.lock();
            waiting.kept = true;
            let waker = waiting.wakers.pop();
            drop(waiting);
            waker.into_iter().for_each(Waker::wake);
        }

        pub(crate) fn notify_waiters(&self) {
            let mut waiting = self.0.lock();
            waiting.told += 1;
            let wakers = std::mem::take(&mut waiting.wakers);
            drop(waiting);
            wakers.into_iter().for_each(Waker::wake);
        }

        pub(crate) fn notified(&self) -> Notified<'_> {
            Notified { notify: self, told: self.0.lock().told }
        }
    }

    pub(crate) struct Notified<'a> {
        notify: &'a Notify,
        told: u64,
    }

    impl Notified<'_> {
        /// From its making on it is among those that are told.
        pub(crate) fn enable(self: Pin<&mut Self>) {}
    }

    impl Future for Notified<'_> {
        type Output = ();

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            let mut waiting = self.notify.0.lock();
            if std::mem::take(&mut waiting.kept) || waiting.told != self.told {
                return Poll::Ready(());
            }
            waiting.wakers.push(cx.waker().clone());
            Poll::Pending
        }
    }
}
