//! The state machine in simulated time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod budgets;
mod catalogue;
mod drain;
mod hearing;
mod losses;
mod membership;
mod objects;
mod placement;
mod placement_simulation;
mod plans;
mod shares;
mod simulation;
mod windows;

use std::time::Duration;

use forebay_protocol::{
    BudgetLease, ClusterView, ControlCall, ControlReply, ControlRequest, Heartbeat, MemberRequest, MountShare, WorkerInfo,
    WorkerReport,
};
use forebay_types::{BitRate, Error, HostId, Mount, MountId, MountOptions, WorkerId};

use super::{Catalogue, Checkpoint, Command, Event, Start, State};
use crate::PlacementSettings;

const LEASE: Duration = Duration::from_secs(5);
const LAKE: MountId = MountId(1);
/// The bound of mount lake in bytes a second.
const BOUND: u64 = 50_000_000;

fn at(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

fn lake() -> Mount {
    let options = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(BOUND)), ..MountOptions::default() };
    Mount { id: LAKE, name: "lake".parse().unwrap(), url: "s3://lake".into(), options }
}

/// The first coordinator of a cluster with the mount lake.
fn state() -> State {
    restarted(1, &[])
}

/// A coordinator of an epoch after one that knew these workers.
fn restarted(epoch: u64, presumed: &[u64]) -> State {
    let placement = PlacementSettings { window: Duration::from_secs(60), ..PlacementSettings::default() };
    started(epoch, presumed, placement, None)
}

/// The same that places so, and begins with what the one before has kept.
fn started(epoch: u64, presumed: &[u64], placement: PlacementSettings, checkpoint: Option<Checkpoint>) -> State {
    let catalogue = Catalogue { mounts: [(LAKE, lake())].into(), ..Catalogue::default() };
    let presumed = remembered(presumed);
    let (lease, metadata, seed) = (LEASE, "sqlite", 7);
    let (state, restored) = State::new(Start { epoch, lease, metadata, catalogue, presumed, placement, seed, checkpoint });
    restored.unwrap();
    state
}

/// What is remembered of workers.
fn remembered(workers: &[u64]) -> Vec<(WorkerId, String)> {
    workers.iter().map(|worker| (WorkerId(*worker), info(*worker).address)).collect()
}

fn info(worker: u64) -> WorkerInfo {
    let info = WorkerInfo::new(WorkerId(worker), HostId("host".into()), format!("10.0.0.{worker}:7000"));
    WorkerInfo { dram_bytes: 1 << 30, disk_bytes: 1 << 40, turn: worker, location: "host".into(), ..info }
}

/// The commands without the answer, and the answer.
fn ask(state: &mut State, now: f64, request: impl Into<ControlCall>) -> (Vec<Command>, Option<ControlReply>) {
    let mut commands = state.decide(at(now), Event::Asked(request.into()));
    let answers = commands.extract_if(.., |command| matches!(command, Command::Answer(_)));
    let mut replies: Vec<_> =
        answers.map(|command| if let Command::Answer(reply) = command { reply } else { unreachable!() }).collect();
    assert!(replies.len() <= 1, "one answer at most: {replies:?}");
    (commands, replies.pop())
}

fn error_of(reply: Option<ControlReply>) -> Error {
    match reply {
        Some(ControlReply::Failed { kind, message }) => Error::new(kind, message),
        other => panic!("{other:?} is no failure"),
    }
}

fn register(state: &mut State, now: f64, worker: u64) -> ClusterView {
    match ask(state, now, MemberRequest::Register(info(worker))).1 {
        Some(ControlReply::View(view)) => view,
        other => panic!("{other:?} is no view"),
    }
}

/// A coordinator with so many workers, all of them there from the beginning.
fn joined(workers: u64) -> State {
    let mut state = state();
    (1..=workers).for_each(|worker| drop(register(&mut state, 0.0, worker)));
    state
}

/// A heartbeat that says nothing.
fn blank(worker: u64) -> Heartbeat {
    Heartbeat::silent(WorkerId(worker))
}

fn heartbeat(worker: u64, have: u64, demand: u64) -> MemberRequest {
    let demand = vec![(LAKE, demand)];
    MemberRequest::Heartbeat(Heartbeat { have, demand, ..blank(worker) })
}

/// A heartbeat with this demand; the view that came, and the share of mount lake.
fn beat(state: &mut State, now: f64, worker: u64, demand: u64) -> (Option<ClusterView>, MountShare) {
    match ask(state, now, heartbeat(worker, 0, demand)).1 {
        Some(ControlReply::Beat { view, shares, lease, .. }) => {
            assert_eq!(lease, LEASE);
            (view, *shares.iter().find(|share| share.mount == LAKE).expect("a share of lake"))
        }
        other => panic!("{other:?} is no beat"),
    }
}

/// The worker's share in bytes a second.
fn rate(state: &mut State, now: f64, worker: u64, demand: u64) -> u64 {
    beat(state, now, worker, demand).1.bytes_per_sec.expect("lake has a bound")
}

fn budget(state: &mut State, now: f64, client: u64) -> BudgetLease {
    match ask(state, now, ControlRequest::Budget { client, mount: LAKE }).1 {
        Some(ControlReply::Budget(lease)) => lease,
        other => panic!("{other:?} is no budget"),
    }
}

fn view(state: &mut State, now: f64) -> ClusterView {
    match ask(state, now, ControlRequest::View { have: 0 }).1 {
        Some(ControlReply::View(view)) => view,
        other => panic!("{other:?} is no view"),
    }
}
