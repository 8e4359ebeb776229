//! The lock around the state, through which connections, clock and writer pass, and the queues that its commands go to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use forebay_metrics::table;
use forebay_protocol::{ClusterStatus, ControlReply, Filled, PlacementStatus};
use forebay_runtime::time::Instant;
use forebay_transport::Admission;
use forebay_types::{MountId, MountName, TokenInfo, Verifier, Young};
use parking_lot::Mutex;
use tracing::warn;

use super::deciding::Deciding;
use super::news::News;
use super::queues::{Job, PlannerQueue, WriterQueue};
use super::remembered::Remembered;
use super::running_time::RunningTime;
use crate::decide::{Command, Event, State, Stored};

/// What connections, the clock and the writer share.
pub(crate) struct Shared {
    state: Mutex<Deciding>,
    started: Instant,
    /// Looked at within the lock of the state, or alone.
    running: Mutex<RunningTime>,
    pub(crate) writer: WriterQueue,
    planner: PlannerQueue,
    pub(crate) news: News,
    pub(crate) remembered: Remembered,
    admission: Arc<Admission>,
    /// The state of tokens that the admission knows.
    admitted: Mutex<u64>,
    /// The database answered when it was asked last.
    metadata_answers: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        state: State,
        writer: WriterQueue,
        planner: PlannerQueue,
        admission: Arc<Admission>,
        remembered: Remembered,
    ) -> Self {
        let (state, started) = (Mutex::new(Deciding::new(state)), forebay_runtime::time::instant());
        let shared = Self {
            state,
            started,
            running: Mutex::default(),
            writer,
            planner,
            news: News::default(),
            remembered,
            admission,
            admitted: Mutex::new(0),
            metadata_answers: AtomicBool::new(true),
        };
        shared.admit();
        shared
    }

    /// Lets the holders of the tokens in that there are now.
    fn admit(&self) {
        // Held over both, so that an older list never comes after a newer one.
        let mut admitted = self.admitted.lock();
        let (version, tokens) = self.state.lock().state.tokens();
        assert!(version >= *admitted, "tokens of state {version} are those of after state {admitted}");
        if *admitted != version {
            self.admission.set(tokens);
            *admitted = version;
        }
    }

    /// What workers check the proofs of clients against.
    pub(crate) fn credentials(&self) -> ControlReply {
        let (version, tokens) = self.state.lock().state.tokens();
        let verifiers = self.admission.standing().into_iter().chain(tokens).collect();
        ControlReply::Credentials { version, verifiers }
    }

    pub(crate) fn mount_name(&self, id: MountId) -> Option<MountName> {
        self.state.lock().state.mount_name(id)
    }

    pub(crate) fn mount_young(&self, name: &MountName) -> Option<Young> {
        self.state.lock().state.mount_young(name)
    }

    /// Lets the state decide now on what this process has to say itself.
    pub(crate) fn decide(&self, event: Event) -> Vec<Command> {
        self.decide_for(event, &"this coordinator")
    }

    /// Lets the state decide now, for a sender that is named where that fails. What is not for the one who asked is done here.
    pub(crate) fn decide_for(&self, event: Event, sender: &dyn fmt::Display) -> Vec<Command> {
        let changes_tokens = matches!(event, Event::Stored(Stored::Token(_) | Stored::TokensRemoved(_)) | Event::Loaded(_));
        let mut commands = {
            let mut state = self.state.lock();
            // Within the lock, so that time does not go back between two events.
            let now = self.now();
            let mut commands = state.decide(now, event, sender);
            // Within it as well, so that nobody is told of members before it is known that they are to be written.
            for command in commands.extract_if(.., |command| matches!(command, Command::Remember(_))) {
                if let Command::Remember(workers) = command {
                    self.remembered.want(workers);
                }
            }
            commands
        };
        if changes_tokens {
            self.admit();
        }
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
                table::COORDINATOR_LEASES_EXPIRED.only().add(1);
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

    /// The database answered, or not; gives what was seen before.
    pub(crate) fn saw_metadata(&self, answers: bool) -> bool {
        self.metadata_answers.swap(answers, Relaxed)
    }

    pub(crate) fn metadata_answers(&self) -> bool {
        self.metadata_answers.load(Relaxed)
    }

    /// How long until time alone makes something happen.
    pub(crate) fn next_tick(&self) -> Duration {
        self.state.lock().state.next_tick().saturating_sub(self.now())
    }

    pub(crate) fn status(&self) -> ClusterStatus {
        self.state.lock().state.status(self.now())
    }

    pub(crate) fn placement(&self, limit: usize) -> PlacementStatus {
        self.state.lock().state.placement_status(limit)
    }

    pub(crate) fn filled(&self, limit: usize) -> Filled {
        self.state.lock().state.filled(limit)
    }

    pub(crate) fn tokens(&self) -> Vec<TokenInfo> {
        self.state.lock().state.tokens().1.iter().map(Verifier::info).collect()
    }

    /// The time that the coordinator has run.
    fn now(&self) -> Duration {
        let mut running = self.running.lock();
        // Within the lock, so that time does not go back between two looks.
        running.at(self.started.elapsed())
    }
}
