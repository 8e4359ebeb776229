//! Figures of the paper, redrawn from our own runs.

mod loads;

use forebay_chart::{Chart, Line};
use forebay_types::Result;

use crate::compare::{compare, named, way};
use crate::decide::Leading;
use crate::metrics::Outcome;
use crate::program::no_figure;
use crate::scenario::{Scenario, Way};

pub use loads::skew_of_trace;

/// The figures by name, and what each shows.
pub const FIGURES: [(&str, &str); 14] = [
    ("knee", "uniform replication by workers and rate (figure 1)"),
    ("popularity", "how many reads the most popular segments have (of figures 2 and 3)"),
    ("age", "how many reads the newest segments have (of figures 2 and 3)"),
    ("overlap", "how far windows read the same (of figures 2 and 3)"),
    ("storage-p50", "storage against the median (figure 12)"),
    ("storage-p95", "storage against 95 of 100"),
    ("storage-p99", "storage against 99 of 100"),
    ("workers-storage", "storage with 10 to 25 workers (figures 10 and 11)"),
    ("workers-p99", "99 of 100 with 10 to 25 workers (figures 10 and 11)"),
    ("utilisation", "latency against load"),
    ("garbage", "garbage collection by room (figure 16)"),
    ("polling", "latency by how often clients poll (figure 15)"),
    ("table-age", "reads that come to the wrong worker, by how old clients' tables are"),
    ("table-age-p99", "what these cost"),
];

/// One of the figures; each point that is of runs is the middle of seeds 1 to `seeds`.
pub fn figure(name: &str, seeds: u64) -> Result<Chart> {
    let draw = Draw { seeds };
    match name {
        "knee" => draw.knee(),
        "popularity" => loads::popularity(),
        "age" => loads::age(),
        "overlap" => loads::overlaps(),
        "storage-p50" => draw.storage("p50", |outcome| outcome.p50_ms),
        "storage-p95" => draw.storage("p95", |outcome| outcome.p95_ms),
        "storage-p99" => draw.storage("p99", |outcome| outcome.p99_ms),
        "workers-storage" => draw.workers("replicas a segment", |outcome| outcome.storage),
        "workers-p99" => draw.workers("p99, ms", |outcome| outcome.p99_ms),
        "utilisation" => draw.utilisation(),
        "garbage" => draw.garbage(),
        "polling" => draw.polling(),
        "table-age" => {
            let of_a_million = |outcome: &Outcome| outcome.misrouted as f64 * 1e6 / outcome.accesses.max(1) as f64;
            Ok(Chart { from_zero: true, ..draw.table_age("misrouted of a million reads", of_a_million)? })
        }
        "table-age-p99" => draw.table_age("p99, ms", |outcome| outcome.p99_ms),
        _ => Err(no_figure(name, &FIGURES)),
    }
}

struct Draw {
    seeds: u64,
}

/// A scenario that is known.
fn place(name: &str) -> Result<Scenario> {
    named(name).ok_or_else(|| forebay_types::Error::internal(format!("there is no scenario {name:?}")))
}

impl Draw {
    fn run(&self, place: &Scenario, way: &Way) -> Outcome {
        place.middle(way, self.seeds)
    }

    /// Figure 1: how many replicas of everything are enough depends on workers and rate.
    fn knee(&self) -> Result<Chart> {
        let mut lines = Vec::new();
        for (workers, utilisation) in [(10, 0.7), (15, 0.5), (15, 0.7), (15, 0.8), (25, 0.7)] {
            let place = Scenario::new(workers, 100, utilisation, 0.99);
            lines.push(line(&format!("{workers} workers, {utilisation} busy"), &[1, 2, 3, 4, 5, 6, 8, 10], |replicas| {
                Ok((f64::from(*replicas), self.run(&place, &way(&format!("uniform-{replicas}"))?).p99_ms))
            })?);
        }
        let own = self.run(&place("paper")?, &way("getafix")?);
        lines.push(line("getafix, 15 at 0.7", &[own], |own| Ok((own.storage, own.p99_ms)))?);
        Ok(chart("Uniform replication: the knee moves with workers and rate", "replicas a segment", "p99, ms", lines))
    }

    /// Figure 12: storage against latency.
    fn storage(&self, name: &str, of: fn(&Outcome) -> f64) -> Result<Chart> {
        let place = place("paper")?;
        let mut lines = Vec::new();
        for (title, prefix, suffix, steps) in [
            ("getafix, by budget", "getafix-budget", "", vec!["1", "1.5", "2", "3", "4"]),
            ("..., nobody asked", "getafix-budget", "-answers", vec!["1", "1.5", "2", "3", "4"]),
            ("uniform, any replica", "uniform", "", vec!["1", "1.5", "2", "3", "4", "6", "8"]),
            ("uniform, jsq by answers", "uniform", "-jsq-answers", vec!["1", "1.5", "2", "3", "4", "6", "8"]),
            ("uniform, jsq, perfect", "uniform", "-jsq", vec!["1", "1.5", "2", "3", "4", "6", "8"]),
        ] {
            lines.push(line(title, &steps, |step| {
                let outcome = self.run(&place, &way(&format!("{prefix}-{step}{suffix}"))?);
                Ok((outcome.storage, of(&outcome)))
            })?);
        }
        for (title, name) in
            [("getafix-paper", "getafix-paper"), ("scarlett, peak", "scarlett"), ("scarlett, mean", "scarlett-mean")]
        {
            let outcome = self.run(&place, &way(name)?);
            lines.push(line(title, &[outcome], |outcome| Ok((outcome.storage, of(outcome))))?);
        }
        Ok(chart(
            "Storage against latency: 15 workers, 100 segments, 0.7 busy",
            "replicas a segment",
            &format!("{name}, ms"),
            lines,
        ))
    }

    /// Figures 10 and 11: from 10 to 25 workers, at one load of each.
    fn workers(&self, y: &str, of: fn(&Outcome) -> f64) -> Result<Chart> {
        let ways = ["getafix", "getafix-paper", "scarlett", "uniform-2-jsq-answers", "uniform-equal"].map(String::from);
        let mut lines = ways.each_ref().map(|way| Line { name: way.clone(), ..Line::default() });
        for workers in [10, 15, 20, 25] {
            let place = Scenario::new(workers, 100, 0.7, 0.99);
            for (line, row) in lines.iter_mut().zip(compare(&place, &ways, self.seeds)?) {
                line.points.push((workers as f64, of(&row.outcome)));
            }
        }
        Ok(chart("By workers: 100 segments, 0.7 busy", "workers", y, lines.into()))
    }

    fn utilisation(&self) -> Result<Chart> {
        let mut lines = Vec::new();
        for name in ["getafix", "getafix-budget-2", "getafix-paper", "scarlett", "uniform-2", "uniform-2-jsq"] {
            lines.push(line(name, &[30, 40, 50, 60, 70, 80, 90], |percent| {
                let place = Scenario { utilisation: f64::from(*percent) / 100.0, ..place("paper")? };
                Ok((f64::from(*percent), self.run(&place, &way(name)?).p99_ms))
            })?);
        }
        Ok(chart("Latency against load: 15 workers, 100 segments", "percent of capacity asked for", "p99, ms", lines))
    }

    /// Garbage collection by what workers have room for: it gains less the more room there is.
    fn garbage(&self) -> Result<Chart> {
        let mut lines = Vec::new();
        for name in ["getafix", "getafix-paper", "getafix-paper-without-garbage"] {
            lines.push(line(name, &[26, 28, 32, 36, 40, 50, 60], |room| {
                let mut place = place("room")?;
                place.cluster.room = Some(*room);
                Ok((*room as f64, self.run(&place, &way(name)?).p95_ms))
            })?);
        }
        Ok(chart(
            "Garbage collection: 3 workers, 60 segments and 20 that come",
            "segments a worker has room for",
            "p95, ms",
            lines,
        ))
    }

    /// Figure 15: how often clients poll, up to five windows.
    fn polling(&self) -> Result<Chart> {
        let mut lines = Vec::new();
        for (title, scenario, way) in [
            ("getafix", "paper", way("getafix")?),
            ("getafix-paper", "paper", way("getafix-paper")?),
            ("..., break before make", "paper", break_before_make("getafix-paper")?),
            ("getafix, hot", "hot", way("getafix")?),
            ("getafix, new segments", "fresh", way("getafix")?),
            ("getafix-paper, new segm.", "fresh", way("getafix-paper")?),
        ] {
            lines.push(line(title, &[1, 5, 10, 20, 30, 40, 60, 120, 300], |secs| {
                let mut place = place(scenario)?;
                place.cluster.poll = secs * 1_000_000;
                Ok((*secs as f64, self.run(&place, &way).p99_ms))
            })?);
        }
        Ok(chart("How often clients ask for the routing table", "seconds between polls", "p99, ms", lines))
    }

    /// By how old the tables of clients are: workers that drop a replica at once are asked for it until the news is there.
    fn table_age(&self, y: &str, of: fn(&Outcome) -> f64) -> Result<Chart> {
        let mut lines = Vec::new();
        for (title, way) in [
            ("getafix", way("getafix")?),
            ("..., break before make", break_before_make("getafix")?),
            ("getafix-paper", way("getafix-paper")?),
            ("..., break before make", break_before_make("getafix-paper")?),
        ] {
            lines.push(line(title, &[0, 50, 100, 200, 500, 1_000, 2_000], |ms| {
                let mut place = place("paper")?;
                place.cluster.table_age = Some(ms * 1_000);
                Ok((*ms as f64, of(&self.run(&place, &way))))
            })?);
        }
        Ok(chart("How old the routing tables of clients are", "age of tables, ms", y, lines))
    }
}

/// A way in which a replica that is not planned any more goes at once, whoever may be sent to it.
fn break_before_make(name: &str) -> Result<Way> {
    let way = way(name)?;
    Ok(Way { leading: Leading { make_before_break: false, ..way.leading }, ..way })
}

fn line<T>(name: &str, steps: &[T], point: impl Fn(&T) -> Result<(f64, f64)>) -> Result<Line> {
    Ok(Line { name: name.into(), points: steps.iter().map(point).collect::<Result<_>>()?, dashed: false })
}

fn chart(title: &str, x: &str, y: &str, lines: Vec<Line>) -> Chart {
    Chart { title: title.into(), x: x.into(), y: y.into(), from_zero: false, lines }
}
