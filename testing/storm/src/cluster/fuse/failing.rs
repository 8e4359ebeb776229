//! A disk of which all reads and writes fail when it is told to.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Mounted;
use super::volume::Volume;

/// A mounted file system in memory; unmounted when dropped.
#[derive(Debug)]
pub struct FailingDisk {
    fails: Arc<AtomicBool>,
    mounted: Mounted,
}

impl FailingDisk {
    /// Mounts one below a folder.
    pub fn mount(folder: &Path) -> io::Result<Self> {
        let fails = Arc::new(AtomicBool::new(false));
        let mounted = Mounted::mount(folder.join("failing"), Volume::new(Arc::clone(&fails)), || {})?;
        Ok(Self { fails, mounted })
    }

    /// Where it is.
    pub fn place(&self) -> &Path {
        &self.mounted.place
    }

    /// Reads and writes fail from now on, or no longer.
    pub fn fail(&self, fails: bool) {
        self.fails.store(fails, Relaxed);
    }
}
