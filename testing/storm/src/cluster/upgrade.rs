//! Processes of one binary that are replaced by those of another, one after the other, in the order of docs/upgrades.md.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Cluster, Process};

/// How long workers may take to be known to a coordinator that has just been started.
const KNOWN_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Cluster {
    /// The coordinator first, then workers, each when it has given up its temporary data, then schedulers, the one that stands by first, and
    /// executors, where there are some, and the gateway.
    pub async fn upgrade(&mut self, binary: &Path) -> io::Result<()> {
        replace(&mut self.coordinator, binary)?;
        for number in 0..self.workers.len() {
            let address = self.reached[number];
            self.drain_when_known(address).await?;
            self.drained(address).await?;
            replace(&mut self.workers[number], binary)?;
        }
        if let Some(sql) = &mut self.beside.sql {
            let [serves, stands_by] = &mut sql.schedulers;
            [stands_by, serves].into_iter().chain(&mut sql.executors).try_for_each(|process| replace(process, binary))?;
        }
        replace(&mut self.gateway, binary)?;
        self.spare.set_binary(binary);
        binary.clone_into(&mut self.binary);
        Ok(())
    }

    async fn drain_when_known(&self, address: SocketAddr) -> io::Result<()> {
        let began = Instant::now();
        loop {
            match self.drain(address, true).await {
                Err(_) if began.elapsed() < KNOWN_WITHIN => sleep(LOOK_EVERY).await,
                drained => return drained,
            }
        }
    }
}

fn replace(process: &mut Process, binary: &Path) -> io::Result<()> {
    process.end()?;
    process.set_binary(binary);
    process.start()?;
    process.wait_until_ready()
}
