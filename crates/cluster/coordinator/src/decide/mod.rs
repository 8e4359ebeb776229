//! What the coordinator decides, without I/O and clocks: its whole state, the one entry [`State::decide`], and the way back for a decision
//! that fails in the middle.

mod budget;
mod catalogue;
mod drain;
mod event;
mod hearing;
mod ledger;
mod lookup;
mod members;
mod parts;
mod placement;
mod shares;
mod status;
#[cfg(test)]
mod tests;
mod tokens;
mod validate;
mod whole;

use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{
    AdminRequest, ClusterView, ControlCall, ControlReply, ControlRequest, Filled, MemberRequest, PlacementStatus,
};
use forebay_types::{Error, MountId, MountName, Verifier, WorkerId, Young};

use crate::PlacementSettings;
use event::answer;
use ledger::Ledger;
use parts::{Losses, Members, Settling, Targets};
use placement::Placement;
use whole::{Soft, failpoint};

pub(crate) use event::{Catalogue, Change, Command, Event, Stored};
pub(crate) use placement::{Checkpoint, Outcome, Problem};
#[cfg(test)]
pub(crate) use whole::fail_at;

/// Segments of one answer about placement.
const SEGMENTS_SHOWN_MAX: u32 = 10_000;

/// At most so many members are counted again after each decision.
const SMALL_MEMBERS: usize = 64;

/// What a coordinator starts from.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) epoch: u64,
    pub(crate) lease: Duration,
    /// `sqlite` or `postgres`.
    pub(crate) metadata: &'static str,
    pub(crate) catalogue: Catalogue,
    /// Workers that were live under the coordinator before, with their addresses: each may hold shares for one lease.
    pub(crate) presumed: Vec<(WorkerId, String)>,
    pub(crate) placement: PlacementSettings,
    /// What random choices of placement follow.
    pub(crate) seed: u64,
    /// Popularity and routes of the coordinator before.
    pub(crate) checkpoint: Option<Checkpoint>,
}

/// All that the coordinator knows. Times are counted from its start.
#[derive(Debug)]
pub(crate) struct State {
    epoch: u64,
    lease: Duration,
    metadata: &'static str,
    catalogue: Arc<Catalogue>,
    members: Members,
    ledger: Ledger,
    targets: Targets,
    placement: Soft<Placement>,
    versions: Versions,
    settling: Settling,
    losses: Losses,
    /// Where distributed SQL is scheduled, and when that was said.
    scheduler: Option<(Arc<str>, Duration)>,
}

/// Numbers that grow with what others have to hear of.
#[derive(Clone, Copy, Debug)]
struct Versions {
    view: u64,
    /// The last one that a worker was to forget with what it knew.
    doubts: u64,
    /// Grows with every change of tokens.
    credentials: u64,
}

/// What is small of a state, as it was when a decision began.
#[derive(Debug)]
pub(crate) struct Before {
    turns: u64,
    catalogue: Arc<Catalogue>,
    versions: Versions,
    losses: Losses,
    scheduler: Option<(Arc<str>, Duration)>,
}

impl State {
    /// The state of a new coordinator. A checkpoint that can't be read is an error beside it: it starts without.
    pub(crate) fn new(start: Start) -> (Self, Result<(), Error>) {
        let presumed: Vec<WorkerId> = start.presumed.iter().map(|(worker, _)| *worker).collect();
        let mut placement = Placement::new(start.placement, start.epoch, start.seed, &presumed);
        let restored = start.checkpoint.as_ref().map_or(Ok(()), |checkpoint| placement.restore(checkpoint));
        let mut state = Self {
            epoch: start.epoch,
            lease: start.lease,
            metadata: start.metadata,
            catalogue: Arc::new(start.catalogue),
            members: Members::new(start.presumed),
            ledger: Ledger::default(),
            targets: Targets::default(),
            placement: Soft::new(placement),
            // The epoch stands above: a view of this coordinator is newer than all of those before it.
            versions: Versions { view: (start.epoch << 32) + 1, doubts: start.epoch << 32, credentials: (start.epoch << 32) + 1 },
            settling: Settling::default(),
            losses: Losses::new(start.epoch),
            scheduler: None,
        };
        state.presume_shares();
        (state, restored)
    }

    /// Takes one event in; `now` never goes back.
    pub(crate) fn decide(&mut self, now: Duration, event: Event) -> Vec<Command> {
        let numbers = self.numbers();
        let before = (self.versions.view, self.placement.window(), self.versions.credentials);
        let mut commands = self.take_in(now, event);
        let after = (self.versions.view, self.placement.window(), self.versions.credentials);
        let grown = self.numbers();
        assert!(grown.iter().zip(&numbers).all(|(after, before)| after >= before), "numbers only grow: {numbers:?}, {grown:?}");
        self.check_small();
        if after != before {
            commands.push(Command::TellAll);
        }
        if self.placement.has_ordered() {
            commands.push(Command::Tell(self.placement.ordered()));
        }
        commands
    }

    /// Numbers that others have heard of, so that none is ever taken back.
    fn numbers(&self) -> [u64; 6] {
        let Versions { view, doubts, credentials } = self.versions;
        [view, doubts, credentials, self.placement.window(), self.placement.routes_version(), self.members.turns]
    }

    /// What follows from the members, where they are few and debug assertions are on.
    fn check_small(&self) {
        if cfg!(debug_assertions) && self.members.by_id.len() <= SMALL_MEMBERS {
            assert_eq!(self.settling.workers(), self.members.live().count(), "each live worker has a view, and nobody else");
        }
    }

    fn take_in(&mut self, now: Duration, event: Event) -> Vec<Command> {
        match event {
            Event::Asked(request) => self.ask(now, request).unwrap_or_else(|error| vec![answer(ControlReply::failed(&error))]),
            Event::Stored(stored) => vec![answer(self.apply(stored))],
            Event::Loaded(catalogue) => {
                self.replace_catalogue(catalogue);
                vec![]
            }
            Event::Planned(outcome, took) => {
                self.placement.take(now, *outcome, took);
                vec![]
            }
            Event::Tick => self.tick(now),
        }
    }

    fn ask(&mut self, now: Duration, call: ControlCall) -> Result<Vec<Command>, Error> {
        match call {
            ControlCall::Ask(request) => self.ask_as_client(now, request),
            ControlCall::Administer(AdminRequest::Drain { worker, draining }) => self.drain(now, worker, draining),
            ControlCall::Administer(AdminRequest::Tokens) => {
                let tokens = self.catalogue.tokens.values().map(Verifier::info).collect();
                Ok(vec![answer(ControlReply::Tokens(tokens))])
            }
            ControlCall::Administer(request) => self.ask_change(request),
            ControlCall::Serve(request) => self.ask_as_member(now, request),
        }
    }

    fn ask_as_client(&mut self, now: Duration, request: ControlRequest) -> Result<Vec<Command>, Error> {
        let reply = match request {
            ControlRequest::View { have } if have == self.versions.view => ControlReply::Unchanged,
            ControlRequest::View { .. } => ControlReply::View(self.view()),
            ControlRequest::Tables => ControlReply::Tables(self.catalogue.tables.values().cloned().collect()),
            ControlRequest::TableAdd { table, replace } => return self.ask_table_add(table, replace),
            ControlRequest::TableRemove { name } => return self.ask_table_remove(name),
            ControlRequest::Budget { client, mount } => ControlReply::Budget(self.budget(now, client, mount)?),
            ControlRequest::Status => ControlReply::Status(Box::new(self.status(now))),
            ControlRequest::Routes { have } => ControlReply::Routes(self.placement.routes_since(have)),
            ControlRequest::Placement { limit } => {
                ControlReply::Placement(Box::new(self.placement_status(limit.clamp(1, SEGMENTS_SHOWN_MAX) as usize)))
            }
            ControlRequest::Scheduler => ControlReply::Scheduler(self.scheduler(now)),
            // The driver answers it.
            ControlRequest::WhoAmI => ControlReply::Unchanged,
            ControlRequest::Unheard { worker, number, .. } => return self.unheard(worker, number),
        };
        Ok(vec![answer(reply)])
    }

    fn ask_as_member(&mut self, now: Duration, request: MemberRequest) -> Result<Vec<Command>, Error> {
        match request {
            MemberRequest::Register(info) => self.register(now, info),
            MemberRequest::Heartbeat(heartbeat) => {
                let mut commands = self.heartbeat(now, heartbeat)?;
                // It may have brought the last report of a window, or an object that everyone will want.
                commands.extend(self.plan_when_due(now));
                Ok(commands)
            }
            MemberRequest::Leave(worker) => self.leave(now, worker),
            MemberRequest::PassRoot { from, to } => self.pass_root(from, to),
            MemberRequest::Scheduler { serves } => {
                // One at a time: the others hear of it, and stand by.
                if self.scheduler(now).is_none_or(|known| known == serves) {
                    self.scheduler = Some((serves.into(), now));
                    failpoint(format_args!("scheduler"));
                }
                Ok(vec![answer(ControlReply::Scheduler(self.scheduler(now)))])
            }
            // The driver answers them.
            MemberRequest::News(_) | MemberRequest::Credentials => Ok(vec![answer(ControlReply::Unchanged)]),
        }
    }

    /// Where the scheduler is, as long as it says so.
    fn scheduler(&self, now: Duration) -> Option<String> {
        let told = self.scheduler.as_ref().filter(|(_, since)| now.saturating_sub(*since) <= self.lease);
        told.map(|(address, _)| address.to_string())
    }

    /// The tokens that are kept, and the number of this state of them.
    pub(crate) fn tokens(&self) -> (u64, Vec<Verifier>) {
        (self.versions.credentials, self.catalogue.tokens.values().cloned().collect())
    }

    pub(crate) fn mount_name(&self, id: MountId) -> Option<MountName> {
        self.catalogue.mounts.get(&id).map(|mount| mount.name.clone())
    }

    /// The rule of age of a mount.
    pub(crate) fn mount_young(&self, name: &MountName) -> Option<Young> {
        self.mount_by_name(name).ok().and_then(|mount| mount.options.young)
    }

    fn tick(&mut self, now: Duration) -> Vec<Command> {
        self.ledger.expire(now);
        let away = self.members.forget_presumed(now, self.lease);
        let mut is_fewer = !away.is_empty();
        if is_fewer {
            away.into_iter().for_each(|worker| self.placement.gone(now, worker));
            self.lost();
        }
        let lost = self.members.expire(now, self.lease);
        let mut commands = Vec::new();
        if !lost.is_empty() {
            is_fewer = true;
            for (worker, _) in &lost {
                self.placement.gone(now, *worker);
                if let Some(hearing) = self.members.hearing(*worker) {
                    self.settling.left(*worker, hearing);
                }
            }
            self.lost();
            commands.extend(lost.into_iter().map(|(worker, address)| Command::ReportLost(worker, address)));
        }
        if is_fewer {
            commands.push(Command::Remember(self.members.remembered()));
        }
        self.members.forget_lost(now);
        // The round of the window before, if its reports were late, comes before the next one closes.
        commands.extend(self.plan_when_due(now));
        self.placement.close_when_over(now);
        commands
    }

    fn plan_when_due(&mut self, now: Duration) -> Vec<Command> {
        let Some(round) = self.placement.round_when_due(now) else { return Vec::new() };
        let plan = round.plan.then(|| Command::Plan(Box::new(self.problem(now))));
        plan.into_iter().chain(round.checkpoint.map(Command::Checkpoint)).collect()
    }

    /// A decision begins. What is given goes to [`State::put_back`] where the decision fails in the middle.
    pub(crate) fn begin(&mut self) -> Before {
        self.ledger.begin();
        self.placement.begin();
        Before {
            turns: self.members.begin(),
            catalogue: Arc::clone(&self.catalogue),
            versions: self.versions,
            losses: self.losses.clone(),
            scheduler: self.scheduler.clone(),
        }
    }

    /// Discards what a decision that failed has changed: members, shares and the catalogue are as they were. Placement, where it may
    /// have been changed, is made anew, as after a restart: who holds what workers say again, and popularity is counted from now on.
    pub(crate) fn put_back(&mut self, before: Before, now: Duration) {
        self.members.put_back(before.turns);
        self.ledger.put_back();
        self.catalogue = before.catalogue;
        (self.versions, self.losses, self.scheduler) = (before.versions, before.losses, before.scheduler);
        // Both follow from the members.
        self.settling = Settling::of(self.members.live().map(|(id, member)| (id, &member.hearing)));
        self.targets = Targets::default();
        if self.placement.is_touched() {
            let placeable = self.members.live().filter(|(_, member)| !member.info.draining).map(|(id, _)| id);
            let workers = placeable.chain(self.members.presumed()).collect();
            self.placement.begin_anew(now, workers);
            self.view_changed();
        }
    }

    /// All but what is soft, and the number of the view, for tests.
    #[cfg(test)]
    pub(crate) fn whole(&self) -> String {
        let (catalogue, members, ledger) = (&self.catalogue, &self.members, &self.ledger);
        let hearing = (&self.settling, &self.losses, self.versions.doubts);
        format!("{:#?}", (catalogue, members, ledger, hearing, self.versions.credentials, &self.scheduler))
    }

    /// When time alone makes something happen, other than that leases run out.
    pub(crate) fn next_tick(&self) -> Duration {
        self.placement.next_due()
    }

    /// What the next plan is made of.
    fn problem(&self, now: Duration) -> Problem {
        let members = self.members.live().filter(|(_, member)| !member.info.draining);
        let infos = members.map(|(id, member)| (id, (&member.info, &member.report))).collect();
        let mount = |id| self.catalogue.mounts.get(&id).cloned();
        let pinned =
            |mount, key: &str| self.catalogue.pins.iter().any(|pin| pin.mount == mount && key.starts_with(pin.prefix.as_str()));
        self.placement.problem(now, &infos, mount, pinned)
    }

    /// Popularity, replicas and routing of the most popular segments.
    pub(crate) fn placement_status(&self, limit: usize) -> PlacementStatus {
        self.placement.status(limit, |id| self.catalogue.mounts.get(&id).map(|mount| mount.name.clone()))
    }

    /// What workers hold, by mounts and by tables.
    pub(crate) fn filled(&self, limit: usize) -> Filled {
        self.placement.filled(limit, |id| self.catalogue.mounts.get(&id).map(|mount| mount.name.clone()))
    }

    /// The cluster as every process needs it.
    fn view(&self) -> ClusterView {
        ClusterView {
            version: self.versions.view,
            epoch: self.epoch,
            mounts: self.catalogue.mounts.values().cloned().collect(),
            pins: self.catalogue.pins.clone(),
            workers: self.members.live().map(|(_, member)| member.info.clone()).collect(),
            poll: Some(self.placement.poll()),
            losses: self.losses.number(),
        }
    }

    /// Members or catalogue have changed: the view is another one, and the shares are to be computed anew.
    fn view_changed(&mut self) {
        self.versions.view += 1;
        self.targets.forget();
    }

    /// A worker is lost, or is a new one: the view says so.
    fn lost(&mut self) {
        self.view_changed();
        self.losses.add(self.versions.view);
    }
}
