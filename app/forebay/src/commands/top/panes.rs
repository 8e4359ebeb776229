//! The tables: what their columns are, what stands in them, and in which order.

use std::cmp::Ordering;

use forebay_api::state_name;
use forebay_protocol::{JobState, MountStatus, SegmentStatus, TransferState, WorkerInfo, WorkerReport, WorkerState};
use forebay_types::{Cell as DecodedCell, format_bytes};

use super::super::segments::short;
use super::history::{History, Of, Rates};
use super::sample::Sample;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Workers,
    Mounts,
    Segments,
    Transfers,
    Jobs,
}

/// A column of one.
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Numbers stand to the right, and the largest comes first.
    pub(super) is_number: bool,
}

/// What a cell shows, and what it is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) shown: String,
    key: Key,
}

#[derive(Clone, Debug, PartialEq)]
enum Key {
    Number(f64),
    Text,
}

/// By which column a table is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sorted {
    pub(super) column: usize,
    /// The last by name, or the largest, comes first.
    pub(super) is_down: bool,
}

const fn text(title: &'static str) -> Column {
    Column { title, is_number: false }
}

const fn number(title: &'static str) -> Column {
    Column { title, is_number: true }
}

const WORKERS: &[Column] = &[
    text("worker"),
    text("address"),
    text("state"),
    number("dram"),
    number("disk"),
    number("queue"),
    number("reads/s"),
    number("out/s"),
    number("in/s"),
    number("from tiers"),
    text("out, a look a bar"),
];
const MOUNTS: &[Column] = &[
    text("mount"),
    number("requests/s"),
    number("received/s"),
    number("sent/s"),
    number("bound/s"),
    number("requests"),
    number("received"),
    text("url"),
];
const SEGMENTS: &[Column] = &[
    text("path"),
    text("segment"),
    number("popularity"),
    number("operations"),
    number("read"),
    number("held by"),
    number("loading"),
    text("routing"),
];
const TRANSFERS: &[Column] = &[text("path"), number("from"), number("bytes"), text("worker"), number("seconds")];
const JOBS: &[Column] = &[
    text("job"),
    text("state"),
    number("priority"),
    number("tasks"),
    number("running"),
    number("read"),
    number("of"),
    number("seconds"),
    text("statement"),
];

/// Bars of a worker's line.
const BARS: usize = 20;
/// Characters of a statement.
const SQL_CHARS: usize = 200;

impl Pane {
    pub(super) const ALL: [Self; 5] = [Self::Workers, Self::Mounts, Self::Segments, Self::Transfers, Self::Jobs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Mounts => "mounts",
            Self::Segments => "segments",
            Self::Transfers => "transfers",
            Self::Jobs => "jobs",
        }
    }

    pub(super) fn columns(self) -> &'static [Column] {
        match self {
            Self::Workers => WORKERS,
            Self::Mounts => MOUNTS,
            Self::Segments => SEGMENTS,
            Self::Transfers => TRANSFERS,
            Self::Jobs => JOBS,
        }
    }

    /// How many lines it has.
    #[cfg(feature = "top")]
    pub(super) fn count(self, sample: &Sample) -> usize {
        match self {
            Self::Workers => sample.status.workers.len(),
            Self::Mounts => sample.status.mounts.len(),
            Self::Segments => sample.placement.segments.len(),
            Self::Transfers => sample.transfers.as_ref().map_or(0, Vec::len),
            Self::Jobs => sample.jobs.as_ref().map_or(0, Vec::len),
        }
    }

    /// How it is sorted unasked: what is busiest, or newest, comes first.
    pub(super) fn sorted(self) -> Sorted {
        let column = match self {
            Self::Workers => 7,
            Self::Mounts => 2,
            Self::Segments => 2,
            Self::Transfers => 4,
            Self::Jobs => 1,
        };
        Sorted { column, is_down: true }
    }

    /// Its lines in their order.
    pub(super) fn lines(self, sample: &Sample, history: &History, sorted: Sorted) -> Vec<Vec<Cell>> {
        let status = &sample.status;
        let mut lines: Vec<Vec<Cell>> = match self {
            Self::Workers => {
                let line = |(info, state, report): &(WorkerInfo, WorkerState, WorkerReport)| {
                    worker((info, *state, report), sample.queues.get(&info.id).copied(), history)
                };
                status.workers.iter().map(line).collect()
            }
            Self::Mounts => status.mounts.iter().map(|of| mount(of, history)).collect(),
            Self::Segments => sample.placement.segments.iter().map(segment).collect(),
            Self::Transfers => sample.transfers.iter().flatten().map(transfer).collect(),
            Self::Jobs => sample.jobs.iter().flatten().map(job).collect(),
        };
        for line in &lines {
            assert_eq!(line.len(), self.columns().len(), "a line has a cell a column");
        }
        lines.sort_by(|a, b| {
            let order = a[sorted.column].order(&b[sorted.column]);
            if sorted.is_down { order.reverse() } else { order }
        });
        lines
    }
}

impl Cell {
    fn text(shown: impl Into<String>) -> Self {
        Self { shown: shown.into(), key: Key::Text }
    }

    fn number(number: f64, shown: impl Into<String>) -> Self {
        Self { shown: shown.into(), key: Key::Number(number) }
    }

    fn count(number: u64) -> Self {
        Self::number(number as f64, number.to_string())
    }

    fn bytes(bytes: u64) -> Self {
        Self::number(bytes as f64, format_bytes(bytes))
    }

    /// Nothing is known: behind all that is, or before it.
    fn unknown() -> Self {
        Self::number(-1.0, "-")
    }

    fn order(&self, other: &Self) -> Ordering {
        if let (Key::Number(a), Key::Number(b)) = (&self.key, &other.key) { a.total_cmp(b) } else { self.shown.cmp(&other.shown) }
    }
}

fn worker((info, state, report): (&WorkerInfo, WorkerState, &WorkerReport), queue: Option<u32>, history: &History) -> Vec<Cell> {
    let of = Of::Worker(info.id);
    let rates = history.now(&of);
    let rate = |what: fn(&Rates) -> u64| rates.as_ref().map_or_else(Cell::unknown, |rates| Cell::bytes(what(rates)));
    let hits = (report.bytes_hit * 100).checked_div(report.bytes_served);
    vec![
        Cell::text(short(info.id)),
        Cell::text(&info.address),
        Cell::text(state_name(state, info.draining, report)),
        tier(report.dram),
        tier(report.disk),
        queue.map_or_else(Cell::unknown, |queue| Cell::count(queue.into())),
        rates.as_ref().map_or_else(Cell::unknown, |rates| Cell::count(rates.reads)),
        rate(|rates| rates.served_bytes),
        rate(|rates| rates.received_bytes),
        hits.map_or_else(Cell::unknown, |share| Cell::number(share as f64, format!("{share}%"))),
        Cell::text(bars(&history.series(&of, |rates| rates.served_bytes))),
    ]
}

fn mount(of: &MountStatus, history: &History) -> Vec<Cell> {
    let rates = history.now(&Of::Mount(of.mount.name.to_string()));
    let rate = |what: fn(&Rates) -> u64| rates.as_ref().map_or_else(Cell::unknown, |rates| Cell::bytes(what(rates)));
    let bound = of.mount.options.bandwidth.map(|bound| bound.bytes_per_sec());
    vec![
        Cell::text(format!("/{}/", of.mount.name)),
        rates.as_ref().map_or_else(Cell::unknown, |rates| Cell::count(rates.requests)),
        rate(|rates| rates.received_bytes),
        rate(|rates| rates.sent_bytes),
        bound.map_or_else(Cell::unknown, Cell::bytes),
        Cell::count(forebay_api::storage_requests(&of.counters)),
        Cell::bytes(of.counters.bytes_in),
        Cell::text(&of.mount.url),
    ]
}

fn segment(of: &SegmentStatus) -> Vec<Cell> {
    let routing: Vec<String> = of.routing.iter().map(|(worker, part)| format!("{} {part}%", short(*worker))).collect();
    vec![
        Cell::text(of.path.to_string()),
        match DecodedCell::of_index(of.index) {
            Some(cell) => Cell::text(cell.to_string()),
            None => Cell::number(f64::from(of.index), of.index.to_string()),
        },
        Cell::number(of.popularity, format!("{:.2}", of.popularity)),
        Cell::count(of.operations),
        Cell::bytes(of.bytes_read),
        Cell::count(of.held.len() as u64),
        Cell::count(of.loading.len() as u64),
        Cell::text(routing.join(" ")),
    ]
}

fn transfer(of: &TransferState) -> Vec<Cell> {
    vec![
        Cell::text(&of.path),
        Cell::bytes(of.start),
        Cell::bytes(of.bytes),
        Cell::text(&of.worker),
        Cell::number(of.seconds, format!("{:.1}", of.seconds)),
    ]
}

fn job(of: &JobState) -> Vec<Cell> {
    let sql: String = of.sql.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SQL_CHARS).collect();
    vec![
        Cell::text(&of.id),
        Cell::text(&of.state),
        Cell::number(f64::from(of.priority), of.priority.to_string()),
        Cell::number(of.tasks_done as f64 / of.tasks.max(1) as f64, format!("{}/{}", of.tasks_done, of.tasks)),
        Cell::count(of.tasks_running),
        Cell::bytes(of.bytes_done),
        Cell::bytes(of.bytes),
        Cell::number(of.seconds, format!("{:.1}", of.seconds)),
        Cell::text(sql),
    ]
}

/// How full it is: by its share.
fn tier((capacity, used, _): (u64, u64, u64)) -> Cell {
    match (used * 100).checked_div(capacity) {
        Some(share) => Cell::number(share as f64, format!("{} of {}", format_bytes(used), format_bytes(capacity))),
        None => Cell::unknown(),
    }
}

/// The last of a series as bars, each a part of the largest of them.
fn bars(series: &[u64]) -> String {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let last = &series[series.len().saturating_sub(BARS)..];
    let most = last.iter().copied().max().unwrap_or_default();
    let bar = |value: &u64| match most {
        0 => EIGHTHS[0],
        most => EIGHTHS[(u128::from(*value) * 7 / u128::from(most)) as usize],
    };
    last.iter().map(bar).collect()
}
