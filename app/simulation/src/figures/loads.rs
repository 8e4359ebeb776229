//! How loads fall on segments: the made-up ones, as figures, and a trace that was recorded.

use std::collections::HashMap;

use forebay_chart::{Chart, Line};
use forebay_types::{Error, Result};

use super::{chart, place};
use crate::scenario::Workload;
use crate::workload::{Micros, Recorded, Skew, overlap};

/// Of what is drawn at random for made-up loads.
const SEED: u64 = 1;
/// Scenarios that differ in how their loads fall on segments.
const SKEWED: [&str; 4] = ["zipf-0.5", "paper", "zipf-1.5", "fresh"];
/// Windows between two that are compared, at most.
const APART: usize = 30;

type Curve = fn(&Skew) -> Vec<(f64, f64)>;

/// A trace by popularity and by age. A segment of a trace counts as new when it is first read there.
pub fn skew_of_trace(title: &str, trace: &Recorded) -> Chart {
    let mut known: HashMap<u32, u32> = HashMap::new();
    let reads = trace.queries.iter().flat_map(|query| query.segments.iter().copied());
    // Those of a log are numbered by its lines, which need not be in the order of time.
    let by_first_read = reads.map(|segment| {
        let next = known.len() as u32;
        *known.entry(segment).or_insert(next)
    });
    let skew = Skew::of(by_first_read, 0);
    let curves: [(&str, Curve); 2] = [("the most read first", Skew::popularity), ("the newest first", Skew::age)];
    of_skew(title, "percent of the segments", curves.map(|(name, curve)| line(name, curve(&skew))).into())
}

pub(super) fn popularity() -> Result<Chart> {
    made_up("Reads of the most popular segments", "percent of the segments, the most read first", Skew::popularity)
}

pub(super) fn age() -> Result<Chart> {
    made_up("Reads of the newest segments", "percent of the segments, the newest first", Skew::age)
}

fn made_up(title: &str, x: &str, curve: Curve) -> Result<Chart> {
    let line_of = |name: &&str| -> Result<Line> {
        let (reads, known) = reads(name)?;
        Ok(line(name, curve(&Skew::of(reads.into_iter().map(|(_, segment)| segment), known))))
    };
    Ok(of_skew(title, x, SKEWED.iter().map(line_of).collect::<Result<_>>()?))
}

pub(super) fn overlaps() -> Result<Chart> {
    let mut lines = Vec::new();
    for name in ["paper", "fresh", "shift"] {
        let window = place(name)?.cluster.window;
        lines.push(line(name, overlap(reads(name)?.0.into_iter(), window, APART)));
    }
    let y = "percent of reads that fall as before";
    Ok(Chart { from_zero: true, ..chart("How far windows read the same", "windows apart", y, lines) })
}

/// The reads of a run with a made-up load, and how many segments there are at its start.
fn reads(name: &str) -> Result<(Vec<(Micros, u32)>, usize)> {
    let scenario = place(name)?;
    let Workload::Synthetic(load) = &scenario.workload else {
        return Err(Error::internal(format!("the load of scenario {name:?} is recorded")));
    };
    let queries_per_sec = scenario.utilisation * scenario.cluster.capacity() / load.mean_accesses();
    let queries = load.queries(queries_per_sec, scenario.cluster.clients, SEED);
    let end = scenario.cluster.end();
    let queries = queries.take_while(|query| query.at < end);
    let reads = queries.flat_map(|query| query.segments.into_iter().map(move |segment| (query.at, segment)));
    Ok((reads.collect(), load.segments))
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), points, dashed: false }
}

fn of_skew(title: &str, x: &str, lines: Vec<Line>) -> Chart {
    Chart { from_zero: true, ..chart(title, x, "percent of the reads", lines) }
}
