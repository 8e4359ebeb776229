//! Who works on the disk.

use std::sync::Arc;
use std::thread::JoinHandle;

use forebay_types::{Result, ResultExt};

use crate::core::Core;
use crate::media::Folder;

/// The threads that work on the disk (tasks, in a simulation), and the folders' locks. They end with this, each after what it is at.
pub(crate) struct Threads {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
    /// Unlocked last, when nobody writes any more.
    _folders: Vec<Folder>,
}

impl Threads {
    /// As many for each disk as there may be requests in flight to it: one that hangs holds up no other.
    pub fn start(core: &Arc<Core>, folders: Vec<Folder>) -> Result<Self> {
        let mut started = Self { core: core.clone(), threads: Vec::new(), _folders: folders };
        for disk in &core.disks {
            if forebay_runtime::is_simulated() {
                disk.pool.work_in_tasks(core);
                continue;
            }
            for _ in 0..core.settings.in_flight {
                let (core, no, index) = (core.clone(), disk.no, started.threads.len());
                let thread = std::thread::Builder::new().name(format!("forebay-disk-{index}"));
                let thread = thread.spawn(move || core.disk(no).pool.run(&core));
                started.threads.push(thread.context(|| "a thread for the disk tier can't be started")?);
            }
        }
        Ok(started)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.core.disks.iter().for_each(|disk| disk.pool.stop());
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the disk tier panicked");
            }
        }
        // What was freed does not come back at the next start.
        self.core.disks.iter().for_each(|disk| self.core.write_index(disk));
    }
}
