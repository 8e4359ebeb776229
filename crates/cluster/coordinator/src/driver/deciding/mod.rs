//! The guard around decisions: what one event breaks by a defect is put back, and nobody else's request fails by it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use forebay_protocol::{ControlCall, ControlReply, Heartbeat, MemberRequest, encode};
use forebay_types::{Error, WorkerId};
use tracing::error;

use crate::decide::{Command, Event, State};

/// Requests and workers that are remembered for what they did, each.
const REFUSED_MAX: usize = 1_024;

/// The state, kept whole whatever happens: an event that it fails on by a defect is discarded with all that it half changed, is named
/// with who sent it, and is not tried again. Others go on.
pub(super) struct Deciding {
    pub(super) state: State,
    /// Requests that failed, as their bytes.
    requests: HashSet<Vec<u8>>,
    /// Workers of whose reports one failed, until they register anew.
    workers: HashMap<WorkerId, Trust>,
}

/// What is still taken in of a worker's reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// All but what they say of segments.
    Rest,
    /// Nothing: its lease runs out.
    Nothing,
}

impl Deciding {
    pub(super) fn new(state: State) -> Self {
        Self { state, requests: HashSet::new(), workers: HashMap::new() }
    }

    /// Takes one event in, of somebody who is named where it fails; `now` never goes back.
    pub(super) fn decide(&mut self, now: Duration, event: Event, sender: &dyn fmt::Display) -> Vec<Command> {
        let event = match event {
            Event::Asked(call) => match self.admit(call) {
                Some(call) => Event::Asked(call),
                None => return vec![Command::Answer(failed())],
            },
            event => event,
        };
        let asked = Asked::of(&event);
        if let Some(commands) = self.attempt(now, event) {
            return commands;
        }
        match asked {
            Asked::Heartbeat(rest) => {
                let worker = rest.worker;
                error!(
                    %worker, %sender,
                    "a report failed by a defect: what this worker says of segments is left out until it registers anew"
                );
                self.trust(worker, Trust::Rest);
                // Its lease goes on all the same.
                if let Some(commands) = self.attempt(now, Event::Asked(MemberRequest::Heartbeat(*rest).into())) {
                    return commands;
                }
                error!(%worker, %sender, "the rest of the report failed too: the worker is not heard until it registers anew");
                self.trust(worker, Trust::Nothing);
                vec![Command::Answer(failed())]
            }
            Asked::Call(kind, call) => {
                // No more of it: it may have secrets.
                error!(kind, bytes = call.len(), %sender, "a request failed by a defect, and is refused from now on");
                if self.requests.len() < REFUSED_MAX {
                    self.requests.insert(call);
                }
                assert!(self.requests.len() <= REFUSED_MAX, "what is remembered has a limit");
                vec![Command::Answer(failed())]
            }
            Asked::Stored => {
                error!(%sender, "a change failed by a defect after it was written");
                vec![Command::Answer(failed())]
            }
            Asked::Nothing(what) => {
                error!(what, %sender, "it failed by a defect, and is left out");
                Vec::new()
            }
        }
    }

    fn trust(&mut self, worker: WorkerId, trust: Trust) {
        if self.workers.len() < REFUSED_MAX || self.workers.contains_key(&worker) {
            self.workers.insert(worker, trust);
        }
        assert!(self.workers.len() <= REFUSED_MAX, "what is remembered has a limit");
    }

    /// The request as far as it is to be tried; none when it has failed before.
    fn admit(&mut self, call: ControlCall) -> Option<ControlCall> {
        match call {
            ControlCall::Serve(MemberRequest::Heartbeat(mut heartbeat)) => {
                let trust = self.workers.get(&heartbeat.worker);
                if trust.is_some() {
                    (heartbeat.window, heartbeat.ended, heartbeat.fresh) = (None, Vec::new(), Vec::new());
                }
                (trust != Some(&Trust::Nothing)).then(|| MemberRequest::Heartbeat(heartbeat).into())
            }
            call => {
                if let ControlCall::Serve(MemberRequest::Register(info)) = &call {
                    self.workers.remove(&info.id);
                }
                let refused = !self.requests.is_empty() && self.requests.contains(&encode(&call)[..]);
                (!refused).then_some(call)
            }
        }
    }

    /// None when it panicked, which is reported where it happened; the state is whole again then.
    fn attempt(&mut self, now: Duration, event: Event) -> Option<Vec<Command>> {
        let state = &mut self.state;
        let before = state.begin();
        let decided = catch_unwind(AssertUnwindSafe(|| state.decide(now, event)));
        if decided.is_err() {
            state.put_back(before, now);
        }
        decided.ok()
    }
}

/// What is needed of an event after it has failed.
enum Asked {
    /// Without what it says of segments.
    Heartbeat(Box<Heartbeat>),
    /// Its name and its bytes.
    Call(&'static str, Vec<u8>),
    Stored,
    /// What it was.
    Nothing(&'static str),
}

impl Asked {
    fn of(event: &Event) -> Self {
        match event {
            Event::Asked(ControlCall::Serve(MemberRequest::Heartbeat(heartbeat))) => Self::Heartbeat(Box::new(Heartbeat {
                worker: heartbeat.worker,
                have: heartbeat.have,
                demand: heartbeat.demand.clone(),
                report: heartbeat.report.clone(),
                window: None,
                ended: Vec::new(),
                fresh: Vec::new(),
                heard: heartbeat.heard,
                background: heartbeat.background.clone(),
                ahead: heartbeat.ahead.clone(),
            })),
            Event::Asked(call) => Self::Call(call.name(), encode(call).to_vec()),
            Event::Stored(_) => Self::Stored,
            Event::Loaded(_) => Self::Nothing("a catalogue"),
            Event::Planned(..) => Self::Nothing("a plan"),
            Event::Tick => Self::Nothing("the passing of time"),
        }
    }
}

fn failed() -> ControlReply {
    ControlReply::failed(&Error::internal("the request failed by a defect of the coordinator, whose log has more"))
}

#[cfg(test)]
mod tests;
