use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use forebay_protocol::{ControlCall, ControlReply, Heartbeat, MemberRequest, encode};
use forebay_types::{Error, WorkerId};
use tracing::error;

use crate::decide::{Command, Event, State};

/// Requests and workers that are remembered for what they did, each.
const REFUSED_MAX: usize = 1_024;

/// The state, kept whole whatever happens: an event that it fails on by a defect is discarded with all that it half changed, is named,
/// and is not tried again. Others go on.
pub(super) struct Deciding {
    pub(super) state: State,
    /// Requests that failed, as their bytes.
    requests: HashSet<Vec<u8>>,
    /// Workers of whose reports one failed: what they say of segments is left out until they register anew.
    workers: HashSet<WorkerId>,
}

impl Deciding {
    pub(super) fn new(state: State) -> Self {
        Self { state, requests: HashSet::new(), workers: HashSet::new() }
    }

    /// Takes one event in; `now` never goes back.
    pub(super) fn decide(&mut self, now: Duration, event: Event) -> Vec<Command> {
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
                error!(%worker, "a report failed by a defect: what this worker says of segments is left out until it registers anew");
                if self.workers.len() < REFUSED_MAX {
                    self.workers.insert(worker);
                }
                // Its lease goes on all the same.
                let again = self.attempt(now, Event::Asked(MemberRequest::Heartbeat(*rest).into()));
                again.unwrap_or_else(|| vec![Command::Answer(failed())])
            }
            Asked::Call(call) => {
                // No more of it: it may have secrets.
                error!(bytes = call.len(), "a request failed by a defect, and is refused from now on");
                if self.requests.len() < REFUSED_MAX {
                    self.requests.insert(call);
                }
                vec![Command::Answer(failed())]
            }
            Asked::Stored => vec![Command::Answer(failed())],
            Asked::Nothing => Vec::new(),
        }
    }

    /// The request as far as it is to be tried; none when it has failed before.
    fn admit(&mut self, call: ControlCall) -> Option<ControlCall> {
        match call {
            ControlCall::Serve(MemberRequest::Heartbeat(mut heartbeat)) if self.workers.contains(&heartbeat.worker) => {
                (heartbeat.window, heartbeat.ended, heartbeat.fresh) = (None, Vec::new(), Vec::new());
                Some(MemberRequest::Heartbeat(heartbeat).into())
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
        let decided = catch_unwind(AssertUnwindSafe(|| state.decide(now, event)));
        if decided.is_err() {
            state.begin_anew(now);
        }
        decided.ok()
    }
}

/// What is needed of an event after it has failed.
enum Asked {
    /// Without what it says of segments.
    Heartbeat(Box<Heartbeat>),
    /// Its bytes.
    Call(Vec<u8>),
    Stored,
    Nothing,
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
            })),
            Event::Asked(call) => Self::Call(encode(call).to_vec()),
            Event::Stored(_) => Self::Stored,
            Event::Loaded(_) | Event::Planned(..) | Event::Tick => Self::Nothing,
        }
    }
}

fn failed() -> ControlReply {
    ControlReply::failed(&Error::internal("the request failed by a defect of the coordinator, whose log has more"))
}

#[cfg(test)]
mod tests {
    use forebay_protocol::{ControlRequest, SegmentUse, WindowReport, WorkerInfo, WorkerReport};
    use forebay_types::{HostId, Key, MountId, ObjectVersion, VersionTag};

    use super::*;
    use crate::PlacementSettings;
    use crate::decide::{Catalogue, Start};
    use crate::driver::running_time::RunningTime;

    fn deciding() -> Deciding {
        let (lease, catalogue, placement) = (Duration::from_secs(5), Catalogue::default(), PlacementSettings::default());
        let start =
            Start { epoch: 1, lease, metadata: "sqlite", catalogue, presumed: Vec::new(), placement, seed: 7, checkpoint: None };
        Deciding::new(State::new(start).0)
    }

    fn register(worker: u64) -> MemberRequest {
        MemberRequest::Register(WorkerInfo {
            id: WorkerId(worker),
            host: HostId("host".into()),
            address: format!("10.0.0.{worker}:7000"),
            unix_socket: None,
            dram_bytes: 1 << 30,
            disk_bytes: 0,
            turn: 0,
            location: "host".into(),
            draining: false,
        })
    }

    fn heartbeat(worker: u64, key: &str) -> MemberRequest {
        let version =
            ObjectVersion { mount: MountId(1), key: Key::new(key).expect("a key"), tag: VersionTag::etag("1"), size: 9 };
        let (operations, service) = (1, Duration::from_millis(1));
        let uses = vec![SegmentUse { version, index: 0, operations, reads: 1, bytes: 9, service, peak: 1, held_bytes: 9 }];
        let window = Some(WindowReport { window: 1 << 32, lasted: Duration::from_secs(60), uses, ..WindowReport::default() });
        let (demand, report) = (vec![(MountId(1), 1)], WorkerReport::default());
        let worker = WorkerId(worker);
        MemberRequest::Heartbeat(Heartbeat {
            worker,
            have: 0,
            demand,
            report,
            window,
            ended: Vec::new(),
            fresh: Vec::new(),
            heard: None,
        })
    }

    fn ask(deciding: &mut Deciding, ms: u64, call: impl Into<ControlCall>) -> ControlReply {
        let commands = deciding.decide(Duration::from_millis(ms), Event::Asked(call.into()));
        let answers = commands.into_iter().filter_map(|command| match command {
            Command::Answer(reply) => Some(reply),
            _ => None,
        });
        let answers: Vec<_> = answers.collect();
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.into_iter().next().expect("one")
    }

    #[test]
    fn no_worker_is_lost_because_the_coordinator_was_stopped() {
        let (mut deciding, mut time) = (deciding(), RunningTime::default());
        let mut tick = |deciding: &mut Deciding, ms: u64| {
            let now = time.at(Duration::from_millis(ms));
            let commands = deciding.decide(now, Event::Tick);
            (now.as_millis() as u64, commands.iter().any(|command| matches!(command, Command::ReportLost(..))))
        };
        let (now, _) = tick(&mut deciding, 250);
        ask(&mut deciding, now, register(1));
        // Longer than a lease, in which nobody could have been heard.
        let (now, lost) = tick(&mut deciding, 9_000);
        assert!(!lost, "lost while the coordinator stood still");
        let beat = ask(&mut deciding, now, heartbeat(1, "a"));
        assert!(matches!(beat, ControlReply::Beat { .. }), "{beat:?}");
        // From then on a worker that says nothing is lost as ever.
        let lost: Vec<u64> = (9_250..20_000).step_by(250).filter(|ms| tick(&mut deciding, *ms).1).collect();
        assert_eq!(lost, [14_250]);
    }

    #[test]
    fn a_report_that_fails_a_thousand_times_stops_nobody_else() {
        let mut deciding = deciding();
        for worker in 1..=3 {
            ask(&mut deciding, 0, register(worker));
        }
        let views = ask(&mut deciding, 1, ControlRequest::View { have: 0 });
        let ControlReply::View(before) = views else { panic!("{views:?}") };
        deciding.state.fail_on("poisoned");
        for round in 0..1_000 {
            let ms = 10 + round * 10;
            for (worker, key) in [(1, "poisoned"), (2, "a"), (3, "b")] {
                let reply = ask(&mut deciding, ms, heartbeat(worker, key));
                assert!(matches!(reply, ControlReply::Beat { .. }), "worker {worker} in round {round}: {reply:?}");
            }
            let view = ask(&mut deciding, ms, ControlRequest::View { have: 0 });
            let ControlReply::View(view) = view else { panic!("{view:?}") };
            assert!(view.workers.len() == 3 && view.version > before.version);
            assert_eq!(deciding.decide(Duration::from_millis(ms), Event::Tick), []);
        }
        // It failed once: what others have said since then stands.
        assert_eq!(deciding.state.placement_status(10).segments_known, 2);
        // A new process of that worker is believed, once more.
        ask(&mut deciding, 20_000, register(1));
        assert!(!deciding.workers.contains(&WorkerId(1)));
    }

    #[test]
    fn a_request_that_fails_is_refused_and_others_are_answered() {
        let mut deciding = deciding();
        deciding.state.fail_on("10.0.0.9:7000");
        for round in 0..1_000 {
            let reply = ask(&mut deciding, round, register(9));
            assert!(
                matches!(&reply, ControlReply::Failed { kind, .. } if *kind == forebay_types::ErrorKind::Internal),
                "{reply:?}"
            );
            let reply = ask(&mut deciding, round, register(1));
            assert!(matches!(&reply, ControlReply::View(view) if view.workers.len() == 1), "{reply:?}");
        }
        assert_eq!(deciding.requests.len(), 1);
    }
}
