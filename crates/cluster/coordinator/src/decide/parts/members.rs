//! Who is in the cluster, who was lost, and who of the coordinator before is presumed to live for one lease.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forebay_protocol::{WorkerInfo, WorkerReport, WorkerState};
use forebay_types::{MountId, PlanTurn, WorkerId};

use super::super::whole::{Kept, failpoint};
use super::Hearing;

/// Workers at once, and as many again that are lost.
pub(in crate::decide) const MEMBERS_MAX: usize = 20_000;

/// A lost worker that has said that it leaves, or was being drained, is forgotten so long after its last heartbeat.
const LEFT_AFTER: Duration = Duration::from_secs(60);
/// The same of all others, which may be on their way back.
const GONE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A worker that registered since the coordinator's start.
#[derive(Clone, Debug)]
pub(in crate::decide) struct Member {
    pub(in crate::decide) info: WorkerInfo,
    pub(in crate::decide) state: WorkerState,
    /// Its last heartbeat.
    pub(in crate::decide) seen: Duration,
    /// Bytes a second that it would take of each mount, were there no bound.
    pub(in crate::decide) demand: BTreeMap<MountId, u64>,
    /// The same to bring what plans will read, by plan, the first one first.
    pub(in crate::decide) ahead: BTreeMap<MountId, BTreeMap<PlanTurn, u64>>,
    /// The same of background work.
    pub(in crate::decide) background: BTreeMap<MountId, u64>,
    pub(in crate::decide) report: WorkerReport,
    pub(in crate::decide) hearing: Hearing,
    /// It has not sent a heartbeat since it registered.
    pub(in crate::decide) is_first: bool,
    /// It was stopped in order, and said so.
    pub(in crate::decide) has_left: bool,
}

/// Who is in the cluster.
#[derive(Debug)]
pub(in crate::decide) struct Members {
    pub(in crate::decide) by_id: Kept<WorkerId, Member>,
    /// Live under the coordinator before, and not registered with this one yet: their addresses, empty where they are not known.
    pub(in crate::decide) presumed: Kept<WorkerId, String>,
    /// Turns given.
    pub(in crate::decide) turns: u64,
}

impl Members {
    pub(in crate::decide) fn new(presumed: Vec<(WorkerId, String)>) -> Self {
        Self { by_id: Kept::default(), presumed: presumed.into_iter().collect(), turns: 0 }
    }

    /// Gives what is to be handed back where the decision fails.
    pub(in crate::decide) fn begin(&mut self) -> u64 {
        self.by_id.begin();
        self.presumed.begin();
        self.turns
    }

    pub(in crate::decide) fn put_back(&mut self, turns: u64) {
        self.by_id.put_back();
        self.presumed.put_back();
        self.turns = turns;
    }

    pub(in crate::decide) fn all(&self) -> impl Iterator<Item = &Member> {
        self.by_id.values()
    }

    pub(in crate::decide) fn live(&self) -> impl Iterator<Item = (WorkerId, &Member)> {
        self.by_id.iter().filter(|(_, member)| member.state == WorkerState::Live).map(|(id, member)| (*id, member))
    }

    pub(in crate::decide) fn live_ids(&self) -> Vec<WorkerId> {
        self.live().map(|(id, _)| id).collect()
    }

    /// What the next coordinator is to know: the live ones with their addresses, and those who have not come back to this one, and may yet.
    pub(in crate::decide) fn remembered(&self) -> Vec<(WorkerId, String)> {
        let live = self.live().map(|(id, member)| (id, member.info.address.clone()));
        live.chain(self.presumed.iter().map(|(id, address)| (*id, address.clone()))).collect()
    }

    pub(in crate::decide) fn presumed(&self) -> impl Iterator<Item = WorkerId> {
        self.presumed.keys().copied()
    }

    pub(in crate::decide) fn is_presumed(&self, worker: WorkerId) -> bool {
        self.presumed.contains_key(&worker)
    }

    /// One lease after a restart nobody holds shares of the coordinator before; gives those who did not come back.
    pub(in crate::decide) fn forget_presumed(&mut self, now: Duration, lease: Duration) -> Vec<WorkerId> {
        if now > lease { self.presumed.retain(|_, _| false) } else { Vec::new() }
    }

    /// Those whose lease has run out just now, with their addresses.
    pub(in crate::decide) fn expire(&mut self, now: Duration, lease: Duration) -> Vec<(WorkerId, String)> {
        let is_over = |member: &Member| member.state == WorkerState::Live && now > member.seen + lease;
        let over = self.by_id.iter().filter(|(_, member)| is_over(member));
        let lost: Vec<_> = over.map(|(id, member)| (*id, member.info.address.clone())).collect();
        for (id, _) in &lost {
            if let Some(member) = self.by_id.get_mut(id) {
                member.state = WorkerState::Lost;
            }
            failpoint(format_args!("lease of {id}"));
        }
        lost
    }

    /// Forgets lost workers that nobody waits for; those that were lost just now must be told of before.
    pub(in crate::decide) fn forget_lost(&mut self, now: Duration) {
        self.forget_gone(now);
        self.forget_longest_lost();
    }

    /// Lost workers that nobody waits for: who was stopped or drained, whose address another has by now, and who is away for a day.
    fn forget_gone(&mut self, now: Duration) {
        let is_lost = |member: &Member| member.state == WorkerState::Lost;
        let lost: BTreeSet<&str> =
            self.all().filter(|member| is_lost(member)).map(|member| member.info.address.as_str()).collect();
        if lost.is_empty() {
            return;
        }
        debug_assert!(self.live().all(|(_, member)| !member.has_left), "who has left is lost until it registers again");
        let addresses = self.live().map(|(_, member)| member.info.address.as_str());
        let taken: BTreeSet<&str> = addresses.filter(|address| lost.contains(address)).collect();
        let is_gone = |member: &Member| {
            let after = if member.has_left || member.info.draining { LEFT_AFTER } else { GONE_AFTER };
            is_lost(member) && (now > member.seen + after || taken.contains(member.info.address.as_str()))
        };
        let gone: Vec<WorkerId> = self.by_id.iter().filter(|(_, member)| is_gone(member)).map(|(id, _)| *id).collect();
        for id in gone {
            self.by_id.remove(&id);
        }
    }

    fn forget_longest_lost(&mut self) {
        let mut lost: Vec<(Duration, WorkerId)> = self
            .by_id
            .iter()
            .filter(|(_, member)| member.state == WorkerState::Lost)
            .map(|(id, member)| (member.seen, *id))
            .collect();
        if lost.len() > MEMBERS_MAX {
            lost.sort();
            for (_, id) in &lost[..lost.len() - MEMBERS_MAX] {
                self.by_id.remove(id);
            }
        }
    }

    pub(in crate::decide) fn hearing(&self, id: WorkerId) -> Option<&Hearing> {
        self.by_id.get(&id).map(|member| &member.hearing)
    }

    pub(in crate::decide) fn live_member(&mut self, id: WorkerId) -> Option<&mut Member> {
        let is_live = self.by_id.get(&id)?.state == WorkerState::Live;
        is_live.then(|| self.by_id.get_mut(&id)).flatten()
    }
}
