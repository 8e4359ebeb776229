//! MixApart's figures 1 and 3 and one more, drawn from runs of the schedule as it is.

use forebay_chart::{Bars, Chart, Line, Row};
use forebay_scheduling::sustained_tasks;
use forebay_types::Result;

use super::bars::{KINDS, ONE_BANDWIDTH, crossing_at, loaded, over_a_set, panel};
use super::{MixApartSettings, mixapart, mixapart_chart, mixapart_rows, sustained};
use crate::program::{Picture, no_figure};

/// Shares of the input that are drawn.
const REUSE: [f64; 10] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// Parallel tasks by reuse as the capacity model has them, a line for each time of a task and each bandwidth (figure 1).
pub fn capacity_chart(task_secs: &[f64], task_bytes: f64, bandwidths: &[f64]) -> Chart {
    let mut lines = Vec::new();
    for bandwidth in bandwidths {
        for secs in task_secs {
            let points = REUSE.map(|reuse| (reuse, sustained_tasks(reuse, *secs, task_bytes, *bandwidth)));
            let name = format!("{secs} s tasks, {} Gbit/s", bandwidth * 8.0 / 1e9);
            lines.push(Line { name, points: points.into(), dashed: false });
        }
    }
    let title = format!("Parallel tasks that shared storage feeds, {:.0} MB a task", task_bytes / 1e6);
    Chart { title, x: "share of the input that is cached".into(), y: "parallel tasks".into(), from_zero: false, lines }
}

/// The figures by name, and what each shows.
pub const MIXAPART_FIGURES: [(&str, &str); 8] = [
    ("capacity", "parallel tasks by reuse behind 10 Gbit/s, with what is sustained (figure 1)"),
    ("capacity-1-gbit", "the same behind 1 Gbit/s"),
    ("cold", "a cold job against ingest, then compute (figure 3a)"),
    ("io-intensive", "by reuse, bandwidth in proportion (figure 3b)"),
    ("cpu-intensive", "by reuse, bandwidth in proportion (figure 3c)"),
    ("one-bandwidth", "by reuse behind one bandwidth, and from where on it is as all data local"),
    ("data-scheduler", "a steady load with the data scheduler and without"),
    ("tiers", "a steady load over a working set by the size of memory, with and without disks for it"),
];

/// A figure of the paper from our own runs.
pub fn mixapart_figure(name: &str) -> Result<Picture> {
    let [io, cpu] = KINDS;
    Ok(match name {
        "capacity" => capacity().into(),
        "capacity-1-gbit" => capacity_chart(&[5.0, 20.0, 60.0], 64e6, &[1e9 / 8.0]).into(),
        "cold" => cold().into(),
        "io-intensive" => by_reuse(io).into(),
        "cpu-intensive" => by_reuse(cpu).into(),
        "one-bandwidth" => one_bandwidth().into(),
        "data-scheduler" => data_scheduler().into(),
        "tiers" => tiers().into(),
        _ => return Err(no_figure(name, &MIXAPART_FIGURES)),
    })
}

/// Figure 1, with marks for what the decision code sustains in simulation.
fn capacity() -> Chart {
    let mut chart = capacity_chart(&[5.0, 20.0, 60.0], 64e6, &[10e9 / 8.0]);
    for reuse in [0.5, 0.8] {
        let found = sustained(&MixApartSettings { reuse, ..MixApartSettings::default() });
        let name = format!("simulated, 20 s, reuse {reuse}");
        chart.lines.push(Line { name, points: vec![(reuse, found.simulated)], dashed: false });
    }
    chart
}

/// Figure 3a: nothing is cached, and the bandwidth is the rate at which all slots read.
fn cold() -> Bars {
    let mut rows = Vec::new();
    for (name, task_secs, _) in KINDS {
        let (local, cold) = (panel(task_secs, 1.0, 1.0, true, 1).secs, panel(task_secs, 1.0, 0.0, true, 1).secs);
        let row =
            |way: &str, parts: [f64; 3]| Row { name: format!("{name}, {way}"), parts: parts.map(|secs| secs / local).into() };
        rows.push(row("ingest", [local, local, 0.0]));
        rows.push(row("cold", [0.0, 0.0, cold]));
    }
    Bars {
        title: "A cold job: ingest, then compute, against transfers just in time".into(),
        unit: "x local".into(),
        parts: ["ingest", "compute", "both at once"].map(String::from).into(),
        rows,
    }
}

/// Figures 3b and 3c: at each reuse behind (1 - reuse) of the rate at which all slots read local data.
fn by_reuse((name, task_secs, _): (&str, f64, f64)) -> Chart {
    let local = panel(task_secs, 1.0, 1.0, true, 1).secs;
    let line = |name: &str, brings_ahead: bool| {
        let point = |reuse: f64| (reuse, panel(task_secs, 1.0 - reuse, reuse, brings_ahead, 1).secs / local);
        Line { name: name.into(), points: REUSE.map(point).into(), dashed: false }
    };
    let all_local = Line { name: "all data local".into(), points: vec![(0.0, 1.0), (0.9, 1.0)], dashed: true };
    Chart {
        title: format!("{name} job, bandwidth (1 - reuse) x the scan rate"),
        x: "share of the input that is cached".into(),
        y: "time to that with all data local".into(),
        from_zero: true,
        lines: vec![line("input brought ahead", true), line("fetched by tasks", false), all_local],
    }
}

/// Figures 3b and 3c behind one bandwidth: where the lines meet that of all data local is found, and marked.
fn one_bandwidth() -> Chart {
    let mut lines = Vec::new();
    for (task_secs, name) in [(1.0, "1 s, I/O-intensive"), (2.5, "2.5 s"), (4.0, "4 s, CPU-intensive")] {
        let local = panel(task_secs, 1.0, 1.0, true, 1).secs;
        let point = |reuse: f64| (reuse, panel(task_secs, ONE_BANDWIDTH * task_secs, reuse, true, 1).secs / local);
        lines.push(Line { name: name.into(), points: REUSE.map(point).into(), dashed: false });
        let crossing = crossing_at(task_secs, true, 1);
        lines.push(Line { name: format!("as long from {crossing:.2} on"), points: vec![point(crossing)], dashed: false });
    }
    lines.push(Line { name: "all data local".into(), points: vec![(0.0, 1.0), (0.9, 1.0)], dashed: true });
    Chart {
        title: "One bandwidth, tasks that compute longer on 64 MB".into(),
        x: "share of the input that is cached".into(),
        y: "time to that with all data local".into(),
        from_zero: true,
        lines,
    }
}

/// A steady load with and without the data scheduler.
fn data_scheduler() -> Chart {
    let settings = loaded(0.4, true, 1);
    mixapart_chart(&settings, &mixapart_rows(&settings, &[0.2, 0.3, 0.4, 0.5, 0.6], &[true, false], 0.7))
}

/// A steady load over a working set, by the size of memory, with and without a disk tier that has room for the set.
fn tiers() -> Chart {
    let ways = [
        ("input brought ahead", 0.0, true),
        ("fetched by tasks", 0.0, false),
        ("brought ahead, with disks for the set", 1.2, true),
    ];
    let line = |(name, disk_tier, brings_ahead): (&str, f64, bool)| {
        let point = |tier: f64| (tier, mixapart(&over_a_set(tier, disk_tier, brings_ahead, 1)).job_secs);
        Line { name: name.into(), points: [0.4, 0.6, 0.8, 1.0, 1.2].map(point).into(), dashed: false }
    };
    Chart {
        title: "Mean time of a job over a set of 64 GB: 100 workers of 2 slots".into(),
        x: "memory of all workers, as a share of the set".into(),
        y: "seconds".into(),
        from_zero: true,
        lines: ways.map(line).into(),
    }
}
