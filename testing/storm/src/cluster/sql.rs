//! What runs SQL on several machines: a scheduler and its standby, and executors.

use std::io::{self, Error};
use std::time::{Duration, Instant};

use forebay_client::Client;
use tokio::time::sleep;

use super::{Cluster, Process, flag, free_address};

const EXECUTORS: usize = 2;
/// How long a scheduler may take until the coordinator knows it.
const KNOWN_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Schedulers and executors.
#[derive(Debug)]
pub struct SqlRoles {
    /// The first one serves, the other stands by.
    pub schedulers: [Process; 2],
    /// Run tasks.
    pub executors: Vec<Process>,
}

impl SqlRoles {
    /// Processes that are not started yet, as `role` makes them of a name and arguments.
    pub(super) fn new(coordinators: &str, role: impl Fn(&str, &[String]) -> io::Result<Process>) -> io::Result<Self> {
        let scheduler = |number: usize| {
            let listen = flag("scheduler-listen", free_address()?);
            role(&format!("scheduler-{number}"), &["scheduler".to_owned(), flag("coordinator", coordinators), listen])
        };
        let executor = |number: usize| {
            let (listen, slots) = (flag("executor-listen", free_address()?), flag("slots", 1));
            role(&format!("executor-{number}"), &["executor".to_owned(), flag("coordinator", coordinators), listen, slots])
        };
        let schedulers = [scheduler(0)?, scheduler(1)?];
        Ok(Self { schedulers, executors: (0..EXECUTORS).map(executor).collect::<io::Result<_>>()? })
    }

    pub(super) fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        self.schedulers.iter_mut().chain(&mut self.executors)
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        self.executors.iter_mut().try_for_each(Process::end)?;
        self.schedulers.iter_mut().try_for_each(Process::end)
    }
}

impl Cluster {
    /// Starts them, the standby when the first scheduler is the one that is known.
    pub(super) async fn begin_sql(&mut self) -> io::Result<()> {
        let Some(mut sql) = self.beside.sql.take() else { return Ok(()) };
        let begun = sql.begin(&self.client(true).await?).await;
        self.beside.sql = Some(sql);
        begun
    }
}

impl SqlRoles {
    async fn begin(&mut self, owner: &Client) -> io::Result<()> {
        let [first, standby] = &mut self.schedulers;
        first.start()?;
        first.wait_until_ready()?;
        let began = Instant::now();
        while owner.scheduler().await.map_err(Error::other)?.is_none() {
            if began.elapsed() > KNOWN_WITHIN {
                return Err(Error::other(format!("the coordinator does not hear of a scheduler within {KNOWN_WITHIN:?}")));
            }
            sleep(LOOK_EVERY).await;
        }
        for executor in &mut self.executors {
            executor.start()?;
        }
        self.executors.iter_mut().try_for_each(Process::wait_until_ready)?;
        standby.start()?;
        standby.wait_until_ready()
    }
}
