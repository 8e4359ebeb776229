//! What the demo found, as text and as JSON, with its verdict on the answers.

use std::fmt::Write;
use std::time::Duration;

use forebay_types::{BitRate, Error, Result, format_bytes, format_duration};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::floor::{Floor, TransferCost};
use super::serve::Counted;
use crate::output::format_table;

/// The runs, in the order of the report.
pub(crate) const NAMES: [&str; 5] = ["direct", "ingest", "cold", "warm", "local"];
pub(crate) const TITLES: [&str; 5] = ["direct from S3", "ingest, then compute", "Forebay, cold", "Forebay, warm", "local files"];
const DIRECT: usize = 0;
const INGEST: usize = 1;
const COLD: usize = 2;
const WARM: usize = 3;
const LOCAL: usize = 4;

/// One query of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) secs: f64,
    pub(crate) cpu_secs: f64,
    pub(crate) bytes: u64,
    pub(crate) requests: u64,
}

/// One way of running the queries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// Before the first query: the copy of ingest-then-compute.
    pub(crate) before_secs: f64,
    /// Before the first query as well: listing the tables' files and reading the footers that planning wants of them.
    pub(crate) open_secs: f64,
    /// From the S3 server, in all.
    pub(crate) bytes: u64,
    /// To the S3 server, in all.
    pub(crate) requests: u64,
    /// Query 1 first; nothing for those that were not run.
    pub(crate) per_query: [Measured; 22],
}

impl Run {
    /// Takes a query in.
    pub(crate) fn add(&mut self, n: usize, secs: f64, cpu_secs: f64, counted: Counted) {
        self.per_query[n - 1] = Measured { secs, cpu_secs, bytes: counted.bytes, requests: counted.requests };
        self.bytes += counted.bytes;
        self.requests += counted.requests;
    }

    /// Each query with the median of its times; bytes and requests are the largest of any round.
    pub(crate) fn median(rounds: &[Self]) -> Self {
        let mut run = Self::default();
        for (at, measured) in run.per_query.iter_mut().enumerate() {
            let middle = |of: fn(&Measured) -> f64| {
                let mut values: Vec<f64> = rounds.iter().map(|round| of(&round.per_query[at])).collect();
                values.sort_by(f64::total_cmp);
                match values.len() {
                    0 => 0.0,
                    count if count % 2 == 1 => values[count / 2],
                    count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
                }
            };
            measured.secs = middle(|measured| measured.secs);
            measured.cpu_secs = middle(|measured| measured.cpu_secs);
            measured.bytes = rounds.iter().map(|round| round.per_query[at].bytes).max().unwrap_or(0);
            measured.requests = rounds.iter().map(|round| round.per_query[at].requests).max().unwrap_or(0);
        }
        run.bytes = rounds.iter().map(|round| round.bytes).max().unwrap_or(0);
        run.requests = rounds.iter().map(|round| round.requests).max().unwrap_or(0);
        run
    }

    /// Seconds of everything.
    pub(crate) fn secs(&self) -> f64 {
        self.before_secs + self.open_secs + self.per_query.iter().map(|measured| measured.secs).sum::<f64>()
    }
}

/// Whether the answers are the published ones.
#[derive(Debug)]
pub(crate) struct Answers {
    /// There are published ones for this scale factor.
    pub(crate) checked: bool,
    right: usize,
    wrong: Vec<String>,
}

impl Answers {
    pub(crate) fn new(scale: f64) -> Self {
        Self { checked: scale == 1.0, right: 0, wrong: Vec::new() }
    }

    /// Takes the verdict on one answer in.
    pub(crate) fn note(&mut self, verdict: std::result::Result<(), String>) {
        if let Err(wrong) = verdict { self.wrong.push(wrong) } else { self.right += 1 }
    }
}

/// Everything that the demo found.
pub(crate) struct Report {
    pub(crate) scale: f64,
    pub(crate) data_bytes: u64,
    pub(crate) bandwidth: BitRate,
    pub(crate) latency: Duration,
    pub(crate) queries: Vec<usize>,
    pub(crate) rounds: u32,
    pub(crate) runs: [Run; 5],
    pub(crate) floors: Vec<(usize, Floor)>,
    pub(crate) cost: TransferCost,
    pub(crate) answers: Answers,
}

impl Report {
    /// What cold can't be faster than.
    pub(crate) fn floor_secs(&self) -> f64 {
        self.floors.iter().map(|(_, floor)| floor.secs()).sum()
    }

    /// The link in megabits a second.
    fn mbit(&self) -> f64 {
        self.bandwidth.bytes_per_sec() as f64 * 8.0 / 1e6
    }

    /// What was run, in one line.
    pub(crate) fn title(&self) -> String {
        let queries = match self.queries.as_slice() {
            [one] => format!("query {one}"),
            many => format!("{} queries", many.len()),
        };
        format!(
            "TPC-H, scale factor {} ({} of Parquet), {queries}, {:.0} Mbit/s and {:.0} ms to S3, {} cores",
            self.scale,
            format_bytes(self.data_bytes),
            self.mbit(),
            self.latency.as_secs_f64() * 1e3,
            self.cost.cores
        )
    }

    /// The report for people; with the floors and times of each query when `verbose`.
    pub(crate) fn text(&self, verbose: bool) -> String {
        let secs = |run: usize| self.runs[run].secs();
        let mut text = format!("{}\n\n", self.title());
        let mut rows = Vec::new();
        for (run, title) in self.runs.iter().zip(TITLES) {
            rows.push(vec![
                title.to_string(),
                format!("{:.2}", run.secs()),
                format!("{:.2}x", run.secs() / secs(LOCAL)),
                format!("{:.2}x", run.secs() / secs(DIRECT)),
                format_bytes(run.bytes),
                format!("{:.2}x", run.bytes as f64 / self.data_bytes as f64),
                run.requests.to_string(),
            ]);
            if run.before_secs > 0.0 {
                rows.push(vec!["  of it copying".to_string(), format!("{:.2}", run.before_secs)]);
            }
        }
        let titles = ["", "seconds", "to local", "to direct", "from S3", "to data", "requests"];
        push(&mut text, &format_table(&titles, &[1, 2, 3, 4, 5, 6], &rows));

        let ratio = secs(COLD) / self.floor_secs();
        let _ = write!(
            text,
            "\ncold is {ratio:.2}x of its floor of {:.2} s (for each query the largest of: the transfer alone, the computing alone,\n\
             CPU seconds of both over the cores; summed) and takes {:.0} % {} than ingest-then-compute.\n\
             warm takes {:.3}x the time of local files ({}, in turns with them).\n",
            self.floor_secs(),
            (1.0 - secs(COLD) / secs(INGEST)).abs() * 100.0,
            if secs(COLD) <= secs(INGEST) { "less time" } else { "more time" },
            secs(WARM) / secs(LOCAL),
            if self.rounds == 1 { "one round".to_string() } else { format!("medians of {} rounds", self.rounds) },
        );
        let _ = writeln!(text, "{}", self.answers_text());
        if verbose {
            text.push('\n');
            push(&mut text, &self.per_query());
            let _ = write!(
                text,
                "\nfloor: transfer alone = bytes at {} and one request's {}; computing alone = local files; CPU = that of local files and\n\
                 {:.2} s a GB received and {:.2} s a GB sent by the S3 server (measured while copying), over {} cores.\n",
                self.bandwidth,
                format_duration(self.latency),
                self.cost.receiver_cpu_per_byte * 1e9,
                self.cost.server_cpu_per_byte * 1e9,
                self.cost.cores
            );
        }
        text
    }

    fn per_query(&self) -> Vec<String> {
        let titles = [&[""][..], &NAMES, &["cold from S3", "transfer", "compute", "cpu", "floor", "", "cold/floor"]].concat();
        let shown = |secs: f64| format!("{secs:.2}");
        let row = |(n, floor): &(usize, Floor)| {
            let measured = self.runs.each_ref().map(|run| run.per_query[n - 1]);
            let cold = measured[COLD];
            let secs = measured.map(|query| shown(query.secs));
            let floors = [floor.transfer_secs, floor.compute_secs, floor.cpu_secs, floor.secs()].map(shown);
            let ratio = [floor.name().to_string(), format!("{:.2}x", cold.secs / floor.secs())];
            [&[format!("Q{n}")][..], &secs, &[format_bytes(cold.bytes)], &floors, &ratio].concat()
        };
        let rows: Vec<_> = self.floors.iter().map(row).collect();
        format_table(&titles, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12], &rows)
    }

    fn answers_text(&self) -> String {
        match (self.answers.checked, self.answers.wrong.len()) {
            (false, 0) => "All runs answer alike; published answers are for scale factor 1.".to_string(),
            (true, 0) => format!("All {} answers of all runs equal the published ones.", self.answers.right),
            (_, wrong) => {
                format!("WRONG: {wrong} answers are not those that they have to be, the first in {}", self.answers.wrong[0])
            }
        }
    }

    /// An error when an answer is wrong.
    pub(crate) fn verdict(&self) -> std::result::Result<(), String> {
        if self.answers.wrong.is_empty() { Ok(()) } else { Err(self.answers_text()) }
    }

    /// The report for programs.
    pub(crate) fn json(&self) -> Result<String> {
        let mut runs = Map::new();
        for (name, run) in NAMES.iter().zip(&self.runs) {
            let each = |value: fn(&Measured) -> Value| -> Vec<Value> {
                let one = |n: usize| if self.queries.contains(&n) { value(&run.per_query[n - 1]) } else { Value::Null };
                (1..=22).map(one).collect()
            };
            let mut entry = json!({
                "secs": run.secs(),
                "bytes": run.bytes,
                "requests": run.requests,
                "queries": each(|query| json!(query.secs)),
                "query_bytes": each(|query| json!(query.bytes)),
                "query_requests": each(|query| json!(query.requests)),
                "query_cpu_secs": each(|query| json!(query.cpu_secs)),
            });
            if run.before_secs > 0.0 {
                entry["copy_secs"] = json!(run.before_secs);
            }
            if run.open_secs > 0.0 {
                entry["open_secs"] = json!(run.open_secs);
            }
            runs.insert((*name).to_string(), entry);
        }
        let floors: Vec<_> =
            self.floors.iter().map(|(n, floor)| FloorOf { query: *n, floor: *floor, secs: floor.secs() }).collect();
        let report = json!({
            "runs": runs,
            "floor_secs": self.floor_secs(),
            "bandwidth_mbit": self.mbit(),
            "latency_ms": self.latency.as_secs_f64() * 1e3,
            "scale": self.scale,
            "data_bytes": self.data_bytes,
            "cores": self.cost.cores,
            "rounds": self.rounds,
            "floors": floors,
            "transfer_cost": self.cost,
            "answers": { "checked": self.answers.checked, "right": self.answers.right, "wrong": self.answers.wrong },
            "forebay_version": env!("CARGO_PKG_VERSION"),
        });
        let text = serde_json::to_string_pretty(&report);
        text.map(|text| text + "\n").map_err(|error| Error::internal(format!("can't write JSON: {error}")))
    }
}

#[derive(Serialize)]
struct FloorOf {
    query: usize,
    secs: f64,
    #[serde(flatten)]
    floor: Floor,
}

fn push(text: &mut String, lines: &[String]) {
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
}
