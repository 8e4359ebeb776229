//! A second coordinator, which leads when the first one is gone.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Process;

/// The file of a data folder by which the owner is known, which each coordinator would make for itself.
const OWNER: &str = "owner.secret";

/// A coordinator that stands by.
#[derive(Debug)]
pub struct Standby {
    /// Its process.
    pub process: Process,
    /// Where it listens when it leads.
    pub address: SocketAddr,
}

impl Standby {
    /// Starts it beside one that leads, for the same owner.
    pub(super) fn begin(&mut self, folder: &Path) -> io::Result<()> {
        let own = folder.join(&self.process.name);
        DirBuilder::new().mode(0o700).create(&own)?;
        fs::copy(folder.join("coordinator").join(OWNER), own.join(OWNER))?;
        self.process.start()?;
        self.process.wait_until_up()
    }

    /// How long it took until it leads.
    pub fn takes_over(&mut self) -> io::Result<Duration> {
        let began = Instant::now();
        self.process.wait_until_ready()?;
        Ok(began.elapsed())
    }
}
