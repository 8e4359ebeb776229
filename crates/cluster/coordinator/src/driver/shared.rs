use std::time::Duration;

use forebay_protocol::{ClusterStatus, PlacementStatus};
use metrics::counter;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use super::news::News;
use super::planner::PlannerQueue;
use super::writer::{Job, WriterQueue};
use crate::decide::{Command, Event, State};

/// What connections, the clock and the writer share.
pub(crate) struct Shared {
    state: Mutex<State>,
    started: Instant,
    writer: WriterQueue,
    planner: PlannerQueue,
    news: News,
}

impl Shared {
    pub(crate) fn new(state: State, writer: WriterQueue, planner: PlannerQueue) -> Self {
        Self { state: Mutex::new(state), started: Instant::now(), writer, planner, news: News::default() }
    }

    /// Lets the state decide now. What is not for the one who asked is done here.
    pub(crate) fn decide(&self, event: Event) -> Vec<Command> {
        let mut commands = {
            let mut state = self.state.lock();
            // Within the lock, so that time does not go back between two events.
            let now = self.now();
            state.decide(now, event)
        };
        let own = commands.extract_if(.., |command| matches!(command, Command::Plan(_) | Command::Checkpoint(_)));
        for command in own.collect::<Vec<_>>() {
            let sent = match command {
                Command::Plan(problem) => self.planner.try_send(problem).is_ok(),
                Command::Checkpoint(checkpoint) => self.writer.try_send(Job::Checkpoint(checkpoint)).is_ok(),
                _ => unreachable!("others were left in place"),
            };
            if !sent {
                warn!("plan or checkpoint left out: the one before it is not done");
            }
        }
        commands.retain(|command| match command {
            Command::ReportLost(worker, address) => {
                warn!(%worker, address, "worker lost: its lease ran out");
                counter!("forebay_coordinator_leases_expired").increment(1);
                false
            }
            Command::Remember(workers) => {
                // The writer keeps the last only, and whoever comes later makes it whole.
                if let Err(mpsc::error::TrySendError::Full(_)) = self.writer.try_send(Job::Remember(workers.clone())) {
                    warn!(workers = workers.len(), "live workers not written: the database is slow");
                }
                false
            }
            Command::TellAll => {
                self.news.tell_all();
                false
            }
            Command::Tell(workers) => {
                self.news.tell(workers);
                false
            }
            _ => true,
        });
        commands
    }

    pub(crate) fn writer(&self) -> &WriterQueue {
        &self.writer
    }

    pub(crate) fn news(&self) -> &News {
        &self.news
    }

    /// How long until time alone makes something happen.
    pub(crate) fn next_tick(&self) -> Duration {
        self.state.lock().next_tick().saturating_sub(self.now())
    }

    pub(crate) fn status(&self) -> ClusterStatus {
        self.state.lock().status(self.now())
    }

    pub(crate) fn placement(&self, limit: usize) -> PlacementStatus {
        self.state.lock().placement_status(limit)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
