//! `forebay simulate getafix`: ways to lead a cluster beside each other in one scenario, as table, CSV or picture.

use std::time::Duration;

use forebay_simulation::{NAMES, Row, Scenario, Workload, chart, compare, csv, named, skew_of_trace};
use forebay_types::{Error, Result};

use super::{list_scenarios, recorded, write};
use crate::cli::GetafixArgs;
use crate::exit::Outcome;
use crate::output::list;

/// What is compared when nothing is said.
const USUAL: [&str; 7] =
    ["getafix", "getafix-2", "getafix-paper", "scarlett", "uniform-equal", "uniform-2-jsq", "uniform-2-jsq-answers"];

/// The oldest tables, in microseconds.
const TABLE_AGE_MAX: u64 = 3_600_000_000;

pub(crate) fn run(args: &GetafixArgs) -> Outcome {
    if args.scenario == "list" {
        return list_scenarios(args.json, &NAMES);
    }
    let scenario = scenario(args)?;
    if let Workload::Recorded(trace) = &scenario.workload {
        write(args.skew.as_deref(), || skew_of_trace("How a trace's reads fall on its segments", trace).svg())?;
    }
    let ways = if args.ways.is_empty() { USUAL.map(String::from).to_vec() } else { args.ways.clone() };
    let rows = compare(&scenario, &ways, u64::from(args.seeds))?;
    write(args.csv.as_deref(), || csv(&rows))?;
    write(args.svg.as_deref(), || chart(&title(args, &scenario), &rows).svg())?;
    let titles = ["way", "replicas", "p50 ms", "p95 ms", "p99 ms", "loads/window", "stalled", "misrouted", "busiest"];
    list(args.json, &rows, &titles, &[1, 2, 3, 4, 5, 6, 7, 8], line)
}

/// The scenario of that name with what the other options change.
fn scenario(args: &GetafixArgs) -> Result<Scenario> {
    let mut scenario = named(&args.scenario).ok_or_else(|| {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        Error::invalid(format!("{:?} is no scenario: use list, {}", args.scenario, names.join(", ")))
    })?;
    if let Some(file) = &args.trace {
        scenario.workload = Workload::Recorded(recorded(file)?);
    }
    if let Workload::Synthetic(load) = &mut scenario.workload {
        load.segments = args.segments.map_or(load.segments, |segments| segments as usize);
        load.theta = args.zipf.unwrap_or(load.theta);
        if !(0.0..=10.0).contains(&load.theta) {
            return Err(Error::invalid(format!("a Zipf exponent of {} is out of range: use 0 to 10", load.theta)));
        }
    }
    let micros = |time: Duration| time.as_micros() as u64;
    let cluster = &mut scenario.cluster;
    cluster.workers = args.workers.map_or(cluster.workers, |workers| workers as usize);
    cluster.clients = args.clients.map_or(cluster.clients, |clients| clients as usize);
    cluster.room = args.room.map(|room| room as usize).or(cluster.room);
    cluster.window = args.window.map_or(cluster.window, micros);
    cluster.poll = args.poll.map_or(cluster.poll, micros);
    cluster.table_age = args.table_age.map(micros);
    if let Some(windows) = args.windows {
        (cluster.windows, cluster.warm_up) = (u64::from(windows), u64::from(windows.div_ceil(5)));
    }
    if cluster.window < 1_000_000 || cluster.poll < 10_000 {
        return Err(Error::invalid("a window is at least 1s, and a client polls at most every 10ms: use longer ones"));
    }
    if cluster.table_age.is_some_and(|age| age > TABLE_AGE_MAX) {
        return Err(Error::invalid("no table is older than an hour: use a --table-age as in 500ms"));
    }
    scenario.utilisation = args.utilisation.unwrap_or(scenario.utilisation);
    if !(scenario.utilisation > 0.0 && scenario.utilisation <= 10.0) {
        return Err(Error::invalid(format!("a utilisation of {} is none: use a share as in 0.7", scenario.utilisation)));
    }
    Ok(scenario)
}

fn title(args: &GetafixArgs, scenario: &Scenario) -> String {
    let what = args.trace.as_ref().map_or(args.scenario.clone(), |file| file.display().to_string());
    let (workers, segments) = (scenario.cluster.workers, scenario.segments_in_all());
    format!("{what}: {workers} workers, {segments} segments, utilisation {}", scenario.utilisation)
}

fn line(row: &Row) -> Vec<String> {
    let outcome = &row.outcome;
    vec![
        row.way.clone(),
        format!("{:.2}", outcome.storage),
        format!("{:.1}", outcome.p50_ms),
        format!("{:.1}", outcome.p95_ms),
        format!("{:.1}", outcome.p99_ms),
        format!("{:.1}", outcome.loads),
        outcome.stalled.to_string(),
        outcome.misrouted.to_string(),
        format!("{:.0} %", outcome.busiest * 100.0),
    ]
}
