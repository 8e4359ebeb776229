//! What worlds come to together: a line at the end, and a row of docs/resilience.md, whose hours are counted over all runs.

use std::collections::BTreeMap;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::options::Options;

/// What stands before and behind the rows.
const BEGIN: &str = "<!-- universe: begin, written by `make universe UNIVERSE_ARGS=--write` -->";
const END: &str = "<!-- universe: end -->";
const HEAD: [&str; 2] =
    ["| first seed | last | each | simulated | calls | faults | failed | commit |", "|---|---|---|---|---|---|---|---|"];
/// Seeds of worlds that failed which are told one by one.
const FAILED_TOLD: usize = 10;

/// The worlds of one run that are over.
#[derive(Default)]
pub(crate) struct Record {
    first: u64,
    last: u64,
    each: String,
    commit: String,
    seconds: u64,
    calls: u64,
    faults: u64,
    failed: Vec<u64>,
    /// How often something rare happened at each point of the code that was passed.
    points: BTreeMap<String, u64>,
}

impl Record {
    /// Of a run in which none is over yet.
    pub(crate) fn new(options: &Options) -> Self {
        let more = [(options.standby, " --standby"), (options.shards, " --shards"), (options.queries, " --queries")];
        let more: String = more.into_iter().filter_map(|(is_so, flag)| is_so.then_some(flag)).collect();
        Self {
            first: options.seed,
            last: options.seed,
            each: format!("{} s, {} calls in ten{more}", options.seconds, options.ops),
            commit: commit(),
            ..Self::default()
        }
    }

    /// What is tried.
    pub(crate) fn commit(&self) -> &str {
        &self.commit
    }

    /// One more, by its line.
    pub(crate) fn add(&mut self, seed: u64, line: &Value) {
        let number = |name: &str| line[name].as_u64().unwrap_or(0);
        let faults = line["faults"].as_object().into_iter().flat_map(|faults| faults.values()).filter_map(Value::as_u64);
        self.last = seed;
        self.seconds += number("simulated_seconds");
        self.calls += number("operations");
        self.faults += faults.sum::<u64>();
        for (place, point) in line["points"].as_object().into_iter().flatten() {
            *self.points.entry(place.clone()).or_default() += point["happened"].as_u64().unwrap_or(0);
        }
        if line["violations"] != 0 {
            self.failed.push(seed);
        }
    }

    /// For who reads along.
    pub(crate) fn said(&self) -> String {
        let Self { first, last, each, commit, calls, faults, .. } = self;
        let (hours, failed) = (hours(self.seconds), self.failed());
        let points: Vec<String> = self.points.iter().map(|(place, times)| format!("{place} {times}")).collect();
        format!(
            "seeds {first} to {last} of {each}, at {commit}: {hours} simulated, {calls} calls, {faults} faults, points: {}, \
             failed: {failed}",
            points.join(" ")
        )
    }

    fn failed(&self) -> String {
        let told: Vec<String> = self.failed.iter().take(FAILED_TOLD).map(u64::to_string).collect();
        match self.failed.len() {
            0 => "none".to_owned(),
            many if many > FAILED_TOLD => format!("{many}: {}, ..", told.join(", ")),
            _ => told.join(", "),
        }
    }

    /// Puts its row into the page, in the place of what the same run has there.
    pub(crate) fn write(&self) -> io::Result<()> {
        let page = page();
        let text = std::fs::read_to_string(&page)?;
        let changed = self.with_row(&text).ok_or_else(|| Error::other(format!("{}: no markers", page.display())))?;
        // As a whole: it is written after each world, and any of these may be the last one.
        let draft = page.with_extension("md.draft");
        std::fs::write(&draft, changed)?;
        std::fs::rename(draft, page)
    }

    fn with_row(&self, text: &str) -> Option<String> {
        let (before, rest) = text.split_once(BEGIN)?;
        let (old, after) = rest.split_once(END)?;
        let Self { first, last, each, commit, calls, faults, .. } = self;
        let row = format!(
            "| {first} | {last} | {each} | {} | {calls} | {faults} | {} | {commit} |",
            hours(self.seconds),
            self.failed()
        );
        let is_same = |line: &str| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let same = [(1, first.to_string()), (3, each.clone()), (8, commit.clone())];
            same.iter().all(|(place, text)| cells.get(*place) == Some(&text.as_str()))
        };
        let others = old.lines().filter(|line| line.starts_with('|') && !HEAD.contains(line) && !is_same(line));
        let rows: Vec<&str> = others.chain([row.as_str()]).collect();
        let all: f64 = rows.iter().filter_map(|row| hours_in(row)).sum();
        let table = [&HEAD[..], &rows].concat().join("\n");
        Some(format!("{before}{BEGIN}\n\n{table}\n\nIn all {all:.2} hours.\n\n{END}{after}"))
    }
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/resilience.md")
}

fn hours(seconds: u64) -> String {
    format!("{:.2} h", seconds as f64 / 3600.0)
}

/// The simulated hours of a row.
fn hours_in(row: &str) -> Option<f64> {
    row.split('|').nth(4)?.trim().strip_suffix(" h")?.parse().ok()
}

/// What was tried: the commit of the checkout that ran it.
fn commit() -> String {
    let asked = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--short=12", "HEAD"]).output();
    let told = asked.ok().filter(|told| told.status.success());
    told.map_or_else(|| "unknown".to_owned(), |told| String::from_utf8_lossy(&told.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(first: u64, commit: &str) -> Record {
        let each = "360 s, 90 calls in ten".to_owned();
        let commit = commit.to_owned();
        Record { first, last: first, each, commit, ..Record::default() }
    }

    #[test]
    fn hours_are_counted_over_runs_and_a_run_has_one_row() {
        let page = format!("# Page\n\n{BEGIN}\n\n| 1 | 9 | as before | 40.50 h | 7 | | none | |\n\n{END}\nThe rest.\n");
        let mut run = record(100, "abc");
        run.add(100, &json!({"simulated_seconds": 1800, "operations": 30, "faults": {"crash": 2, "cut": 1}, "violations": 0}));
        let once = run.with_row(&page).unwrap();
        assert!(once.contains("| 100 | 100 | 360 s, 90 calls in ten | 0.50 h | 30 | 3 | none | abc |"), "{once}");
        assert!(once.contains("In all 41.00 hours.") && once.ends_with("\nThe rest.\n"), "{once}");
        run.add(101, &json!({"simulated_seconds": 1800, "operations": 30, "violations": 2}));
        let twice = run.with_row(&once).unwrap();
        assert!(twice.contains("| 100 | 101 | 360 s, 90 calls in ten | 1.00 h | 60 | 3 | 101 | abc |"), "{twice}");
        assert!(!twice.contains("| 100 | 100 |") && twice.contains("In all 41.50 hours."), "{twice}");
        let other = record(100, "def").with_row(&twice).unwrap();
        assert!(other.contains("| abc |") && other.contains("| def |") && other.contains("| 1 | 9 |"), "{other}");
        assert_eq!(other.matches(HEAD[0]).count(), 1);
    }

    #[test]
    fn a_world_without_a_line_of_its_own_has_failed() {
        let mut run = record(7, "abc");
        run.add(7, &json!({"violations": 1, "first_violations": ["the world's process ended"]}));
        assert!(run.said().ends_with("0.00 h simulated, 0 calls, 0 faults, points: , failed: 7"), "{}", run.said());
        for happened in [2, 3] {
            run.add(8, &json!({"violations": 0, "points": {"beat": {"passed": 9, "happened": happened}, "tell": {"passed": 1}}}));
        }
        assert!(run.said().contains("points: beat 5 tell 0,"), "{}", run.said());
    }

    #[test]
    fn the_page_has_a_place_for_it() {
        let text = std::fs::read_to_string(page()).unwrap();
        assert!(record(1, "abc").with_row(&text).is_some());
    }
}
