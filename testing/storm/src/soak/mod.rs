//! Hours of one cluster: a mixed load, a fault a minute, a limit on memory, and whether anything grows.
//!
//! Each minute is a round: the load begins, a fault comes and goes, the load ends, and what must hold of a cell's history and of processes at
//! rest must hold of it. Beside that all processes are looked at every ten seconds (`watched`): what they have more and more of is told at
//! the end (`growth`).

mod deck;
mod earlier;
mod fit;
mod growth;
mod row;
mod watched;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_demo::S3Server;
use forebay_oracle::{Recovery, Rule, Violation, history};
use forebay_types::ByteSize;
use serde::Serialize;

use crate::cell;
use crate::cells::Cell;
use crate::cluster::{self, Cluster, Group, SmallDisk, Wanted};
use crate::load::{Kind, Load};
use crate::report::{self, Outcome};
use crate::rest::{self, Before};
use crate::struck::Struck;

use earlier::Earlier;
use watched::Watched;

pub use growth::Growth;
pub use row::write;

/// A round, and how long its load is on before the fault, while it lasts, and after it.
const ROUND: Duration = Duration::from_secs(60);
const BEFORE: Duration = Duration::from_secs(10);
const DURING: Duration = Duration::from_secs(15);
const AFTER: Duration = Duration::from_secs(20);
/// From so many minutes on nothing may be left open.
const LONG_MINUTES: u64 = 110;
/// After so many rounds that failed it does not go on.
const FAILED_MOST: u64 = 3;
/// Violations that are told one by one; the rest is counted.
const VIOLATIONS_TOLD: usize = 20;

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What faults, victims and load follow from.
    pub seed: u64,
    /// Rounds, of a minute each.
    pub minutes: u64,
    /// What all processes may have together, with the pages of files that they read and write.
    pub memory: ByteSize,
    /// The binary.
    pub binary: PathBuf,
    /// Where samples are kept, and histories and logs of one that fails.
    pub evidence: PathBuf,
}

/// What a round came to.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// Its number, from 0 on.
    pub round: u32,
    /// The fault.
    pub fault: &'static str,
    /// Calls of all clients.
    pub operations: u64,
    /// Errors that clients saw, by way, call and kind.
    pub errors: BTreeMap<String, u64>,
    /// What reads took.
    pub recovery: Recovery,
    /// Reads were as before within the time that they have.
    pub in_time: bool,
    /// What did not hold.
    pub violations: Vec<Violation>,
}

/// What a soak came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verdict {
    /// What faults, victims and load follow from.
    pub seed: u64,
    /// What was tried.
    pub commit: &'static str,
    /// Rounds that were done.
    pub minutes: u64,
    /// Faults, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// What all processes may have had together, in bytes; none where that could not be said.
    pub memory_limit: Option<u64>,
    /// Why there was no limit.
    pub no_limit: Option<String>,
    /// Calls of all clients.
    pub operations: u64,
    /// Of these, calls that failed.
    pub failed: u64,
    /// Rounds whose reads were not as before in time.
    pub late: u64,
    /// How processes grew.
    pub growth: Vec<Growth>,
    /// The verdict.
    pub outcome: Outcome,
    /// Why it did not come to its end.
    pub reason: Option<String>,
    /// What did not hold: how much, and the first of it.
    pub violations: u64,
    /// See [`Self::violations`].
    pub first_violations: Vec<Violation>,
    /// The folder with samples, and where it failed with histories and logs.
    pub evidence: PathBuf,
}

/// Runs one, and tells of each round.
pub async fn run(plan: &Plan, mut tell: impl FnMut(&Round) -> io::Result<()>) -> io::Result<Verdict> {
    let folder = tempfile::Builder::new().prefix("storm-soak-").tempdir()?;
    let evidence = plan.evidence.join(format!("soak-{}", plan.seed));
    std::fs::create_dir_all(&evidence)?;
    // Gone after all processes.
    let group = Group::make(plan.memory.0);
    let mut verdict = Verdict {
        seed: plan.seed,
        commit: report::commit(),
        memory_limit: group.is_ok().then_some(plan.memory.0),
        no_limit: group.as_ref().err().map(ToString::to_string),
        evidence: evidence.clone(),
        ..Verdict::default()
    };
    let group = group.ok();
    if let Err(error) = soak(plan, folder.path(), group.as_ref(), &mut verdict, &mut tell).await {
        verdict.reason = Some(error.to_string());
    }
    verdict.outcome = match (&verdict.reason, verdict.violations) {
        (_, 1..) => Outcome::Failed,
        (Some(_), 0) => Outcome::NotRun,
        (None, 0) => Outcome::Passed,
    };
    if verdict.outcome != Outcome::Passed {
        cell::keep_logs(folder.path(), &evidence)?;
    }
    Ok(verdict)
}

async fn soak(
    plan: &Plan,
    folder: &Path,
    group: Option<&Group>,
    verdict: &mut Verdict,
    tell: &mut impl FnMut(&Round) -> io::Result<()>,
) -> io::Result<()> {
    let store = Arc::new(cluster::store()?);
    let wanted =
        Wanted { small_disk: SmallDisk::may_mount(), group: group.map(|group| group.place.clone()), ..Wanted::default() };
    let mut cluster = Cluster::start(&plan.binary, folder, &store, wanted).await?;
    let before = Before::look(&mut cluster)?;
    let watched = Watched::begin(&verdict.evidence.join("samples.jsonl"))?;
    let mut soak = Soak { plan, folder, store, cluster, before, watched, earlier: Earlier::default() };
    let mut failed = 0;
    for (round, cell) in (0..).zip(deck::draw(plan.seed, plan.minutes as usize, |cell| cell.hindrance().is_none())) {
        let round = soak.round(round, cell, &verdict.evidence).await?;
        tell(&round)?;
        failed += u64::from(!round.violations.is_empty());
        verdict.add(round);
        if failed == FAILED_MOST {
            verdict.reason = Some(format!("{failed} rounds failed: it did not go on"));
            break;
        }
    }
    verdict.growth = growth::of(&soak.watched.samples);
    verdict.fail(growth::too_much(&verdict.growth, plan.minutes >= LONG_MINUTES));
    verdict.fail(soak.cluster.end().err().map(|error| Violation::new(Rule::StaysUp, error.to_string())));
    if let Some(ended) = group.map(Group::ended).transpose()?.filter(|ended| *ended > 0) {
        verdict.fail([Violation::new(Rule::StaysUp, format!("{ended} processes were ended for want of memory"))]);
    }
    Ok(())
}

impl Verdict {
    fn add(&mut self, round: Round) {
        self.minutes += 1;
        *self.faults.entry(round.fault).or_default() += 1;
        self.operations += round.operations;
        self.failed += round.errors.values().sum::<u64>();
        self.late += u64::from(!round.in_time);
        self.fail(round.violations);
    }

    fn fail(&mut self, violations: impl IntoIterator<Item = Violation>) {
        for violation in violations {
            self.violations += 1;
            if self.first_violations.len() < VIOLATIONS_TOLD {
                self.first_violations.push(violation);
            }
        }
    }
}

/// A cluster, and what is known of it.
struct Soak<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    store: Arc<S3Server>,
    cluster: Cluster,
    before: Before,
    watched: Watched,
    earlier: Earlier,
}

impl Soak<'_> {
    async fn round(&mut self, number: u32, cell: Cell, evidence: &Path) -> io::Result<Round> {
        let (ends, seed) = (Instant::now() + ROUND, deck::seed_of(cell, self.plan.seed, number));
        let load = Load::start(cell.load, &self.cluster, &self.store, self.folder, seed, number).await?;
        self.wait(BEFORE).await?;
        let struck_us = load.recorder().now_us();
        let mut struck = Struck::strike(cell, &mut self.cluster, &self.store, seed, &self.plan.binary).await?;
        self.wait(DURING).await?;
        struck.heal(&mut self.cluster).await?;
        let healed_us = load.recorder().now_us();
        self.wait(AFTER).await?;
        let mut violations = rest::not_up(&mut self.cluster, cell.may_end());
        // Work on a dataset that came to nothing in this minute is no reason to end.
        violations.extend(struck.end().await.unwrap_or_default());
        let (recorder, told) = load.end().await?;
        violations.extend(told);
        violations.extend(self.before.left_over(&mut self.cluster));
        self.watched.look(&mut self.cluster, true)?;
        let calls = recorder.take();
        if cell.load == Kind::Mixed {
            let history = self.earlier.before(&calls);
            violations.extend(cell::judge(cell, &history, struck_us));
            self.earlier.add(&calls);
        }
        if !violations.is_empty() {
            history::save(&calls, &evidence.join(format!("round-{number}.jsonl")))?;
        }
        let recovery = forebay_oracle::recovery(&calls, struck_us, healed_us);
        self.watched.wait(&mut self.cluster, ends).await?;
        Ok(Round {
            round: number,
            fault: cell.name,
            operations: calls.len() as u64,
            errors: forebay_oracle::errors(&calls),
            recovery,
            in_time: recovery.violation().is_none(),
            violations,
        })
    }

    async fn wait(&mut self, time: Duration) -> io::Result<()> {
        self.watched.wait(&mut self.cluster, Instant::now() + time).await
    }
}
