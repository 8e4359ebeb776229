use std::sync::Arc;

use arc_swap::ArcSwapOption;
use forebay_types::{Error, Result};
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime of this process.
static CURRENT: ArcSwapOption<InProcess<Runtime>> = ArcSwapOption::const_empty();

/// The runtime of this process; made at first use. A child of a fork has none of its parent's threads, so it gets one of
/// its own. No lock here: one that is held while the process forks would be held in the child for ever.
pub(crate) fn runtime() -> Result<Handle> {
    loop {
        let current = CURRENT.load_full();
        if let Some(runtime) = current.as_ref().and_then(|current| current.get().ok()) {
            return Ok(runtime.handle().clone());
        }
        let made = Builder::new_multi_thread().thread_name("forebay").enable_all().build();
        let made = made.map_err(|error| Error::from(error).context("can't start threads"))?;
        // Of two threads that come first together, one's stays.
        CURRENT.compare_and_swap(&current, Some(Arc::new(InProcess::new(made))));
    }
}

/// A thing of this process: a runtime, connections, rows, pinned bytes. In a child of a fork it can't be used, and is not
/// dropped: its locks may be held by threads that are not there any more.
pub(crate) struct InProcess<T> {
    process: u32,
    thing: Option<T>,
}

impl<T> InProcess<T> {
    pub(crate) fn new(thing: T) -> Self {
        Self { process: std::process::id(), thing: Some(thing) }
    }

    /// The thing; `Closed` in another process than the one that made it.
    pub(crate) fn get(&self) -> Result<&T> {
        match &self.thing {
            Some(thing) if self.process == std::process::id() => Ok(thing),
            _ => Err(Error::closed(
                "this was opened before the process forked, and its connection is the parent's: open it again here (a client \
                 connects again by itself), or start processes with spawn",
            )),
        }
    }
}

impl<T> Drop for InProcess<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.thing.take());
        }
    }
}
