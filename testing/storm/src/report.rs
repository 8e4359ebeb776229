//! What a cell came to: a line of JSON, and a row of a table.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use serde::Serialize;

use forebay_oracle::{Recovery, Violation};

/// Whether all held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All held.
    #[default]
    Passed,
    /// Something did not.
    Failed,
    /// Nothing is known of it.
    NotTried,
    /// It could not be brought to its end: nothing is known of it, and that is a failure of its own.
    NotRun,
}

/// What a cell came to.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The fault.
    pub fault: String,
    /// What load and victim follow from.
    pub seed: u64,
    /// What was tried: the commit of the checkout that ran it.
    pub commit: &'static str,
    /// How long the load was on.
    pub seconds: u64,
    /// Calls of all clients.
    pub operations: u64,
    /// Errors that clients saw, by way, call and kind.
    pub errors: BTreeMap<String, u64>,
    /// What reads took.
    pub recovery: Option<Recovery>,
    /// The verdict.
    pub outcome: Outcome,
    /// Why it was not tried, or not run.
    pub reason: Option<String>,
    /// What did not hold: how much, and the first of it.
    pub violations: u64,
    /// See [`Self::violations`].
    pub first_violations: Vec<Violation>,
    /// The folder with history and logs of a cell that failed.
    pub evidence: Option<PathBuf>,
    /// What was not as the fault's name says.
    pub note: Option<&'static str>,
}

static COMMIT: LazyLock<String> = LazyLock::new(|| {
    let asked = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let told =
        asked.ok().filter(|told| told.status.success()).map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned());
    told.unwrap_or_else(|| "unknown".to_owned())
});

/// The commit of the checkout that this is run in.
pub fn commit() -> &'static str {
    COMMIT.as_str()
}

impl Report {
    /// One that says nothing yet but how it ended.
    pub fn new(fault: &str, seed: u64, outcome: Outcome) -> Self {
        Self { fault: fault.to_owned(), seed, commit: commit(), outcome, ..Self::default() }
    }

    /// One of a cell that did not start, or did not come to its end, and where its processes' logs are.
    pub fn not_run(fault: &str, seed: u64, reason: String, evidence: Option<PathBuf>) -> Self {
        Self { reason: Some(reason), evidence, ..Self::new(fault, seed, Outcome::NotRun) }
    }

    /// One of a cell that can't be tried here.
    pub fn not_tried(fault: &str, seed: u64, reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..Self::new(fault, seed, Outcome::NotTried) }
    }
}
