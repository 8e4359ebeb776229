//! The record of what was measured, as it lies in the checkout. All that pages say is in it, and all that it says of figures
//! follows from the rounds: [`Record::follow`] works it out again, so that an edit by hand shows.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use forebay_types::{Error, Result, ResultExt};
use serde::{Deserialize, Serialize};

use crate::spread::rounded;
use crate::{Bench, Better, Figure, Machine, Pulled, Spread, Table, Verdict};

const ABOUT: &str = "Written by `make figures` from the rounds in it; nobody edits it by hand.";

/// All figures and the runs that they come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What this file is.
    pub about: String,
    /// Runs by when they began; each figure names its own.
    pub runs: BTreeMap<String, Run>,
    /// Figures in the table's order.
    pub figures: Vec<Entry>,
}

/// One call of the program that measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The commit that was measured.
    pub commit: String,
    /// Whether the checkout differed from it.
    pub changed: bool,
    /// Rounds that were run.
    pub rounds: usize,
    /// Where.
    pub machine: Machine,
    /// Each start of a bench.
    pub starts: Vec<Start>,
}

/// How it was when a bench started, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Which bench.
    pub bench: String,
    /// In which round, from 1 on.
    pub round: usize,
    /// Load averages of 1, 5 and 15 minutes at its start.
    pub load: [f64; 3],
    /// The share of all cores that other processes took while it ran.
    pub others_busy: f64,
    /// How long it took.
    pub secs: f64,
    /// Processor seconds that it took, its peers' with it.
    pub cpu_secs: f64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bench, error) = (&self.bench, self.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default());
        write!(f, "{bench} took {:.1} s, {:.1} of processors, load {}{error}", self.secs, self.cpu_secs, self.load[0])
    }
}

/// What a round gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The peer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<f64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Point {
    pub(crate) fn of(pulled: Pulled) -> Self {
        Self { value: Some(pulled.value), peer: pulled.peer, error: None }
    }

    pub(crate) fn failed(why: String) -> Self {
        Self { error: Some(why), ..Self::default() }
    }
}

/// A figure's peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Who it is.
    pub says: String,
    /// What it did.
    #[serde(flatten)]
    pub spread: Spread,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the table.
    pub name: String,
    /// What it is.
    pub says: String,
    /// What printed it.
    pub command: String,
    /// Its unit.
    pub unit: String,
    /// What came of it.
    pub verdict: Verdict,
    /// What it has to reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar: Option<String>,
    /// Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Spread>,
    /// The peer's, in the same runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// Ours to the peer's, round by round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Spread>,
    /// Why a round of it failed, the first that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Which way is better.
    pub better: Better,
    /// Whether the README shows it though its bar is met.
    pub readme: bool,
    /// The physical limit that the peer is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The run that it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Round by round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Point>,
}

impl Entry {
    /// What the rounds say of a figure.
    pub fn judge(bench: &Bench, figure: &Figure, run: Option<String>, rounds: Vec<Point>) -> Self {
        let values: Vec<f64> = rounds.iter().filter_map(|point| point.value).collect();
        let peers: Vec<f64> = rounds.iter().filter_map(|point| point.peer).collect();
        let ratios: Vec<f64> = rounds.iter().filter_map(|point| Some(rounded(point.value? / point.peer?))).collect();
        let (value, ratio) = (Spread::of(&values), Spread::of(&ratios));
        let error = rounds.iter().find_map(|point| point.error.clone());
        let verdict = match (&error, value, &figure.bar) {
            (Some(_), _, _) => Verdict::Failed,
            (None, None, _) => Verdict::NotRunYet,
            (None, Some(value), Some(bar)) => bar.judge(value.median, ratio.map(|ratio| ratio.median)),
            (None, Some(_), None) => Verdict::ForTheRecord,
        };
        let peer = figure.peer.clone().and_then(|says| Some(Peer { says, spread: Spread::of(&peers)? }));
        Self {
            name: figure.name.clone(),
            says: figure.says.clone(),
            command: bench.command(),
            unit: figure.unit.clone(),
            verdict,
            bar: figure.bar.as_ref().map(ToString::to_string),
            value,
            peer,
            ratio,
            error,
            better: figure.better(),
            readme: figure.readme,
            limit: figure.limit.clone(),
            run: run.filter(|_| !rounds.is_empty()),
            rounds,
        }
    }

    /// Whether these rounds are of what the table asks for now.
    fn is_of(&self, bench: &Bench, figure: &Figure) -> bool {
        self.name == figure.name && self.command == bench.command() && self.unit == figure.unit
    }

    /// Whether there is anything of it.
    pub fn is_run(&self) -> bool {
        self.verdict != Verdict::NotRunYet
    }
}

/// What a run has given so far.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Rounds by figure.
    pub points: BTreeMap<String, Vec<Point>>,
    /// Each start of a bench.
    pub starts: Vec<Start>,
}

impl Record {
    /// Without a figure.
    pub fn empty() -> Self {
        Self { about: ABOUT.to_owned(), runs: BTreeMap::new(), figures: Vec::new() }
    }

    /// Reads a record; where there is no file it is empty.
    ///
    /// # Errors
    /// A file that can't be read or is none.
    pub fn read(path: &Path) -> Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map_err(|error| error.context(path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::empty()),
            Err(error) => Err(Error::from(error)).context(|| path.display()),
        }
    }

    /// Takes the text of a record.
    ///
    /// # Errors
    /// What is none.
    pub fn parse(text: &str) -> Result<Self> {
        let remedy = "check it out again, or remove it and run `make figures`";
        serde_json::from_str(text).map_err(|error| Error::invalid(format!("no record of figures: {error}; {remedy}")))
    }

    /// As it is written.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("figures are plain");
        text.push('\n');
        text
    }

    /// What the table asks for, from the rounds that are here. Figures that the table has no more go, and so do runs that no figure
    /// is from; rounds of another command than the table's now don't count.
    #[must_use]
    pub fn follow(&self, table: &Table) -> Self {
        self.with(table, |_| None)
    }

    /// The same with a run's figures in the place of those that were here; all others keep theirs.
    #[must_use]
    pub fn with_run(&self, table: &Table, began: &str, run: Run, points: &BTreeMap<String, Vec<Point>>) -> Self {
        let mut all = self.clone();
        all.runs.insert(began.to_owned(), run);
        all.with(table, |name| Some((began.to_owned(), points.get(name)?.clone())))
    }

    fn with(&self, table: &Table, new: impl Fn(&str) -> Option<(String, Vec<Point>)>) -> Self {
        let mut figures = Vec::new();
        for (bench, figure) in table.figures() {
            let kept = || {
                let entry = self.figures.iter().find(|entry| entry.is_of(bench, figure))?;
                Some((entry.run.clone().filter(|run| self.runs.contains_key(run))?, entry.rounds.clone()))
            };
            let (run, rounds) = new(&figure.name).or_else(kept).unzip();
            // What was measured by hand only is said to be missing as well.
            figures.push(Entry::judge(bench, figure, run, rounds.unwrap_or_default()));
        }
        Self { about: ABOUT.to_owned(), runs: self.runs_of(table, &figures), figures }
    }

    /// Runs that figures are from, without the starts of benches that have been run again since.
    fn runs_of(&self, table: &Table, figures: &[Entry]) -> BTreeMap<String, Run> {
        let mut runs = BTreeMap::new();
        for (began, run) in &self.runs {
            let of_run = |name: &str| figures.iter().any(|entry| entry.name == name && entry.run.as_ref() == Some(began));
            let benches: Vec<&Bench> =
                table.benches.iter().filter(|bench| bench.figures.iter().any(|figure| of_run(&figure.name))).collect();
            if !benches.is_empty() {
                let starts = run.starts.iter().filter(|start| benches.iter().any(|bench| bench.name == start.bench));
                runs.insert(began.clone(), Run { starts: starts.cloned().collect(), ..run.clone() });
            }
        }
        runs
    }
}
