//! One cell of the table: a cluster, a load, what is done meanwhile, and what the oracle says of it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::sleep;

use crate::cells::Cell;
use crate::cluster::{self, Cluster, TTL_SECS};
use crate::faults::Fault;
use crate::load::{self, Family, Kind, Load, family};
use crate::report::{Outcome, Report};
use crate::rest::{self, Before};
use crate::struck::Struck;
use forebay_oracle::history::{self, Call};
use forebay_oracle::{Losses, Promise, Rule, Violation};

/// Parts of the time of a load that go by before the fault, and until its end.
const BEFORE: f64 = 0.2;
const DURING: f64 = 0.35;
/// How late a worker may notice that what it knows is too old.
const TTL_SLACK_US: u64 = 100_000;
/// Violations that are told one by one; the rest is counted.
const VIOLATIONS_TOLD: usize = 20;

/// Said of an upgrade for which there was no other binary.
const OF_ONE_BINARY: &str = "each process started again, of one binary";

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is tried.
    pub cell: Cell,
    /// What the load and the choice of the victim follow from.
    pub seed: u64,
    /// How long the load is on.
    pub load: Duration,
    /// The binary.
    pub binary: PathBuf,
    /// One of another version, for faults that begin with it. None where there is only the one.
    pub other: Option<PathBuf>,
    /// Where histories and logs of cells that fail are kept.
    pub evidence: PathBuf,
}

/// Runs a cell. One that can't be started, or not be brought to its end, has a report of that: others are run all the same.
pub async fn run(plan: &Plan) -> Report {
    let (name, seed) = (plan.cell.name, plan.seed);
    if let Some(reason) = plan.cell.hindrance() {
        return Report::not_tried(name, seed, reason);
    }
    let folder = match tempfile::Builder::new().prefix(&format!("storm-{name}-")).tempdir() {
        Ok(folder) => folder,
        Err(error) => return Report::not_run(name, seed, error.to_string(), None),
    };
    match report(plan, &folder).await {
        Ok(report) => report,
        Err(error) => {
            let evidence = keep(plan, &folder, &[]);
            let reason = evidence.as_ref().err().map_or(error.to_string(), |unkept| format!("{error}; its logs: {unkept}"));
            Report::not_run(name, seed, reason, evidence.ok())
        }
    }
}

async fn report(plan: &Plan, folder: &TempDir) -> io::Result<Report> {
    let passed = storm(plan, folder.path()).await?;
    let Passed { calls, struck_us, healed_us, mut violations } = passed;
    violations.extend(judge(plan.cell, &calls, struck_us));
    if plan.cell.has(Fault::FolderHangs) {
        violations.extend(load::held_up(&calls, struck_us, healed_us));
    }
    let mut recovery = forebay_oracle::recovery(&calls, struck_us, healed_us);
    if plan.cell.load == Kind::Statements {
        // Of which there are few a second.
        let (back_us, late) = load::back(&calls, struck_us, healed_us, plan.cell.has_standby());
        recovery.reads_back_us = back_us;
        violations.extend(late);
    } else {
        violations.extend(recovery.violation());
    }
    let evidence = if violations.is_empty() { None } else { Some(keep(plan, folder, &calls)?) };
    let outcome = if violations.is_empty() { Outcome::Passed } else { Outcome::Failed };
    let count = violations.len();
    violations.truncate(VIOLATIONS_TOLD);
    Ok(Report {
        seconds: plan.load.as_secs(),
        operations: calls.len() as u64,
        errors: forebay_oracle::errors(&calls),
        recovery: Some(recovery),
        violations: count as u64,
        first_violations: violations,
        evidence,
        note: (plan.cell.begins_with_other() && plan.other.is_none()).then_some(OF_ONE_BINARY),
        ..Report::new(plan.cell.name, plan.seed, outcome)
    })
}

/// A storm that is over.
struct Passed {
    calls: Vec<Call>,
    struck_us: u64,
    healed_us: u64,
    /// Of the processes themselves.
    violations: Vec<Violation>,
}

async fn storm(plan: &Plan, folder: &Path) -> io::Result<Passed> {
    let store = Arc::new(cluster::store()?);
    let at_first = plan.other.as_ref().filter(|_| plan.cell.begins_with_other()).unwrap_or(&plan.binary);
    let mut cluster = Cluster::start(at_first, folder, &store, plan.cell.wants()).await?;
    let before = Before::look(&mut cluster)?;
    let load = Load::start(plan.cell.load, &cluster, &store, folder, plan.seed, 0).await?;
    sleep(plan.load.mul_f64(BEFORE)).await;
    let struck_us = load.recorder().now_us();
    let mut struck = Struck::strike(plan.cell, &mut cluster, &store, plan.seed, &plan.binary).await?;
    sleep(plan.load.mul_f64(DURING)).await;
    struck.heal(&mut cluster).await?;
    let healed_us = load.recorder().now_us();
    sleep(plan.load.mul_f64(1.0 - BEFORE - DURING)).await;
    let mut violations = rest::not_up(&mut cluster, plan.cell.may_end());
    violations.extend(struck.end().await?);
    let (recorder, told) = load.end().await?;
    violations.extend(told);
    violations.extend(before.left_over(&mut cluster));
    // Who does not end in order is told of as well.
    violations.extend(cluster.end().err().map(|error| Violation::new(Rule::StaysUp, error.to_string())));
    Ok(Passed { calls: recorder.take(), struck_us, healed_us, violations })
}

/// What does not hold of a history of objects and temporary nodes: other loads have looked at their answers.
pub(crate) fn judge(cell: Cell, calls: &[Call], struck_us: u64) -> Vec<Violation> {
    if cell.load != Kind::Mixed {
        return Vec::new();
    }
    let workers = if cell.may_lose() { vec![struck_us] } else { Vec::new() };
    let losses = Losses { workers, cuts: Vec::new() };
    let promise = |key| match family(key) {
        Family::Fresh => Promise::InOrder,
        Family::Aging => Promise::SinceAcknowledged,
        Family::AgingOutside => Promise::Within(TTL_SECS * 1_000_000 + TTL_SLACK_US),
    };
    forebay_oracle::judge(calls, promise, &losses)
}

/// Keeps what a cell that failed has left: the history, and the logs of its processes.
fn keep(plan: &Plan, folder: &TempDir, calls: &[Call]) -> io::Result<PathBuf> {
    let kept = plan.evidence.join(format!("{}-{}", plan.cell.name, plan.seed));
    std::fs::create_dir_all(&kept)?;
    history::save(calls, &kept.join("history.jsonl"))?;
    keep_logs(folder.path(), &kept)?;
    Ok(kept)
}

/// Keeps the logs of a cluster's processes.
pub(crate) fn keep_logs(folder: &Path, kept: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some("log"), Some(name)) = (path.extension().and_then(|end| end.to_str()), path.file_name()) {
            std::fs::copy(&path, kept.join(name))?;
        }
    }
    Ok(())
}
