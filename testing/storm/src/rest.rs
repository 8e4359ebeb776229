//! What processes hold when nobody asks them anything any more.

use std::io;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, Process, metric};
use forebay_oracle::{Rule, Violation};

/// What is held for somebody is given back within this time.
const WITHIN: Duration = Duration::from_secs(20);
/// But for what was brought ahead, which workers hold for two minutes where the word that nobody reads it was lost, in a partition say.
const AHEAD: &str = "forebay_worker_tier_pinned_bytes";
const AHEAD_WITHIN: Duration = Duration::from_secs(130);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Descriptors that a process may have open for connections that it keeps, beyond those that it had at first.
const DESCRIPTORS_MORE: u64 = 64;
/// What workers tell of, which is to be nothing at rest.
const OF_WORKERS: [&str; 4] =
    ["forebay_worker_in_place_pinned_bytes", AHEAD, "forebay_worker_temporary_nodes", "forebay_worker_shard_claimed"];
const OF_GATEWAY: [&str; 1] = ["forebay_gateway_connections"];
/// What a process that ended by a defect has said.
const PANIC: &str = "panicked at";

/// What a cluster's processes held before the load.
#[derive(Debug)]
pub struct Before(Vec<Held>);

/// What one process holds.
#[derive(Debug)]
struct Held {
    process: String,
    descriptors: u64,
    /// None of what it does not tell yet: processes do so about once a second.
    told: Vec<(&'static str, Option<f64>)>,
}

impl Before {
    /// Looks at a cluster at rest.
    pub fn look(cluster: &mut Cluster) -> io::Result<Self> {
        Ok(Self(cluster.processes().map(|process| held(process)).collect::<io::Result<_>>()?))
    }

    /// What is held beyond that now, when it has had the time to go.
    pub fn left_over(&self, cluster: &mut Cluster) -> Vec<Violation> {
        let began = Instant::now();
        loop {
            let left: Vec<_> = cluster.processes().zip(&self.0).flat_map(|(process, before)| more(process, before)).collect();
            let is_late = left.iter().any(|(within, _)| began.elapsed() > *within);
            if left.is_empty() || is_late {
                return left.into_iter().map(|(_, what)| Violation::new(Rule::NothingLeft, what)).collect();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// What a process that must run does not, and what those say that ended by a defect.
pub fn not_up(cluster: &mut Cluster, may_end: bool) -> Vec<Violation> {
    let violation = |what| Violation::new(Rule::StaysUp, what);
    let mut violations = Vec::new();
    for process in cluster.processes() {
        let log = std::fs::read_to_string(process.log()).unwrap_or_default();
        if let Some(line) = log.lines().find(|line| line.contains(PANIC)).filter(|_| !may_end) {
            violations.push(violation(format!("{}: {line}", process.name)));
        }
        if let Err(error) = process.wait_until_up() {
            violations.push(violation(error.to_string()));
        }
    }
    violations
}

fn metrics_of(process: &Process) -> &'static [&'static str] {
    match process.name.as_str() {
        "gateway" => &OF_GATEWAY,
        name if name.starts_with("worker") => &OF_WORKERS,
        _ => &[],
    }
}

fn held(process: &Process) -> io::Result<Held> {
    let told = |name: &&'static str| Ok((*name, metric(process.http, name)?));
    let told = metrics_of(process).iter().map(told).collect::<io::Result<Vec<_>>>()?;
    Ok(Held { process: process.name.clone(), descriptors: process.descriptors()?, told })
}

/// What a process holds beyond what it held before, and within which time that must go.
fn more(process: &Process, before: &Held) -> Vec<(Duration, String)> {
    assert_eq!(process.name, before.process, "processes are looked at in one order");
    let now = match held(process) {
        Ok(now) => now,
        Err(error) => return vec![(WITHIN, format!("{} does not say what it holds: {error}", before.process))],
    };
    let mut more: Vec<_> = now
        .told
        .iter()
        .zip(&before.told)
        .filter_map(|(now, at_first)| {
            let (name, at_first) = (now.0, at_first.1.unwrap_or(0.0));
            let within = if name == AHEAD { AHEAD_WITHIN } else { WITHIN };
            match now.1 {
                None => Some((WITHIN, format!("{}: {name} is not told", before.process))),
                Some(now) => {
                    (now > at_first).then(|| (within, format!("{}: {name} is {now}, it was {at_first}", before.process)))
                }
            }
        })
        .collect();
    if now.descriptors > before.descriptors + DESCRIPTORS_MORE {
        let what = format!("{}: {} descriptors are open, {} were", before.process, now.descriptors, before.descriptors);
        more.push((WITHIN, what));
    }
    more
}
