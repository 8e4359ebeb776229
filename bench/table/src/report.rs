//! A line of JSON a figure, with how many times as good as its peer ours is and should be.

use std::io::Write;

use serde_json::{Value, json};

/// One JSON line a figure.
pub struct Report {
    rows: usize,
    pub rounds: usize,
}

/// A figure of ours beside a peer's, and what their ratio should be.
pub struct Figure<'a> {
    pub case: &'a str,
    pub peer: &'a str,
    pub ours: f64,
    pub theirs: f64,
    /// `s` (less is better), `bytes` (less is better).
    pub unit: &'a str,
    /// How many times as good as the peer it should be; nothing where nothing was promised.
    pub at_least: Option<f64>,
    /// What the smallest program takes that does only that work, where it was measured.
    pub limit: Option<f64>,
}

impl Report {
    pub fn new(rows: usize, rounds: usize) -> Self {
        Self { rows, rounds }
    }

    /// Prints a figure; the ratio says how many times as good as the peer ours is.
    pub fn figure(&self, figure: &Figure<'_>) {
        let ratio = figure.theirs / figure.ours;
        self.line(json!({
            "bench": "table", "case": figure.case, "peer": figure.peer, "ours": figure.ours, "theirs": figure.theirs,
            "limit": figure.limit, "unit": figure.unit, "ratio": (ratio * 1000.0).round() / 1000.0, "bar": figure.at_least,
            "met": figure.at_least.map(|bar| ratio >= bar), "rows": self.rows, "rounds": self.rounds,
        }));
    }

    /// Prints seconds of ours beside a peer's.
    pub fn secs(&self, case: &str, peer: &str, ours: f64, theirs: f64, at_least: Option<f64>) {
        self.figure(&Figure { case, peer, ours, theirs, unit: "s", at_least, limit: None });
    }

    /// The same, and beside them what the smallest program takes.
    pub fn secs_within(&self, case: &str, peer: &str, [ours, theirs, limit]: [f64; 3], at_least: Option<f64>) {
        self.figure(&Figure { case, peer, ours, theirs, unit: "s", at_least, limit: Some(limit) });
    }

    /// Prints bytes of ours, which should be at most `at_most` times those of `of`.
    pub fn bytes(&self, case: &str, of: &str, ours: u64, theirs: u64, at_most: Option<f64>) {
        let ratio = ours as f64 / theirs as f64;
        self.line(json!({
            "bench": "table", "case": case, "of": of, "ours": ours, "theirs": theirs, "unit": "bytes",
            "ratio": (ratio * 10_000.0).round() / 10_000.0, "bar": at_most, "met": at_most.map(|bar| ratio <= bar), "rows": self.rows,
        }));
    }

    /// Prints a speed, for the record.
    pub fn speed(&self, case: &str, who: &str, bytes: u64, secs: f64) {
        let speed = (bytes as f64 / secs / 1e7).round() / 100.0;
        self.line(json!({ "bench": "table", "case": case, "who": who, "gb_per_cpu_s": speed, "secs": secs }));
    }

    fn line(&self, value: Value) {
        // A reader that has gone away is no reason to stop.
        let _ = writeln!(std::io::stdout(), "{value}");
    }
}
