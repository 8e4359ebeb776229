//! Who works on the disk.

use std::sync::Arc;
use std::thread::JoinHandle;

use forebay_types::{Result, ResultExt};

use crate::core::Core;
use crate::media::Folder;

/// The threads that work on the disk (tasks, in a simulation), and the folder's lock. They end with this, each after what it is at.
pub(crate) struct Threads {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
    /// Unlocked last, when nobody writes any more.
    _folder: Folder,
}

impl Threads {
    /// As many as there may be requests in flight; none without a disk tier.
    pub fn start(core: &Arc<Core>, folder: Folder) -> Result<Self> {
        let mut started = Self { core: core.clone(), threads: Vec::new(), _folder: folder };
        let Some(disk) = &core.disk else { return Ok(started) };
        if forebay_runtime::is_simulated() {
            disk.pool.work_in_tasks(core);
            return Ok(started);
        }
        let count = core.settings.in_flight;
        for index in 0..count {
            let core = core.clone();
            let thread = std::thread::Builder::new().name(format!("forebay-disk-{index}"));
            let thread =
                thread.spawn(move || core.disk().pool.run(&core)).context(|| "a thread for the disk tier can't be started")?;
            started.threads.push(thread);
        }
        Ok(started)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(disk) = &self.core.disk {
            disk.pool.stop();
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the disk tier panicked");
            }
        }
        if self.core.disk.is_some() {
            // What was freed does not come back at the next start.
            self.core.write_index();
        }
    }
}
