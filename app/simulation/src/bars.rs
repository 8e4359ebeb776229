//! The figures that Getafix has to reach, each beside its peer in the same scenario with the same seeds.

use forebay_types::{Error, Result};
use serde::Serialize;

use crate::compare::{equal_to, named, way};
use crate::metrics::Outcome;
use crate::scenario::{Scenario, Way};

/// The groups of bars by name, and what each is about.
pub const BARS: [(&str, &str); 8] = [
    ("paper", "the default plan against the paper's"),
    ("scarlett", "against Scarlett by peak concurrency"),
    ("uniform", "against uniform replication of equal storage, any replica"),
    ("jsq", "the storage of two replicas of every segment, against those with the shortest queue by perfect knowledge"),
    ("curve", "storage against latency, at every point of uniform replication (figure 12)"),
    ("table", "the routing table against any replica, where segments are split"),
    ("garbage", "garbage collection on against off"),
    ("shift", "what is read changes: the newest window weighed by how it disagrees, against the paper's halving"),
];

/// Scenarios in which uniform replication of equal storage must lose clearly.
const HOT: [&str; 7] = ["paper", "busy", "zipf-1.2", "zipf-1.5", "few", "hot", "many"];

/// A figure, its peer's, and what their ratio may be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The group.
    pub bar: &'static str,
    /// The scenario.
    pub scenario: String,
    /// Which way is measured, and against which.
    pub ways: String,
    /// What is measured.
    pub what: &'static str,
    /// Ours.
    pub figure: f64,
    /// Theirs.
    pub peer: f64,
    /// Ours divided by theirs.
    pub ratio: f64,
    /// What the ratio may be at most.
    pub limit: f64,
    /// Whether it is.
    pub met: bool,
}

/// Measures a group of bars, as the middle of seeds 1 to `seeds`.
pub fn bars(name: &str, seeds: u64) -> Result<Vec<Bar>> {
    let mut bench = Bench { bar: "", seeds, bars: Vec::new() };
    let Some((name, _)) = BARS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = BARS.iter().map(|(name, _)| *name).collect();
        return Err(Error::invalid(format!("{name:?} is no bar: use {}", names.join(", "))));
    };
    bench.bar = name;
    match *name {
        "paper" => bench.against("paper", "getafix", "getafix-paper", &[Storage(0.65), P99(0.5), Loads(0.1)])?,
        "scarlett" => {
            for scenario in HOT.iter().chain(&["light", "zipf-0.5", "unequal"]) {
                bench.against(scenario, "getafix", "scarlett", &[Storage(0.4), P50(1.1), P99(1.1)])?;
            }
        }
        "uniform" => {
            for scenario in HOT.iter().chain(&["light", "zipf-0.5", "unequal", "workers-5", "workers-25"]) {
                bench.uniform(scenario, HOT.contains(scenario))?;
            }
        }
        "jsq" => {
            for scenario in ["paper", "light", "busy", "zipf-0.5", "zipf-1.2", "zipf-1.5", "few", "many"] {
                for peer in ["uniform-2-jsq", "uniform-2-jsq-answers"] {
                    // Storage is that of all the time: what moves is held twice for a moment.
                    bench.against(scenario, "getafix-budget-2", peer, &[Storage(1.0), P50(1.1), P99(1.1)])?;
                }
            }
        }
        "curve" => {
            for replicas in ["1", "1.5", "2", "3", "4"] {
                bench.curve("paper", replicas)?;
            }
        }
        "table" => {
            for scenario in ["few", "hot"] {
                bench.against(scenario, "getafix-paper", "getafix-paper-random", &[P99(0.65)])?;
            }
        }
        "shift" => bench.against("shift", "getafix", "getafix-halving", &[Storage(1.05), P95(1.0), P99(1.0)])?,
        _ => {
            for scenario in ["room", "crowd"] {
                bench.against(scenario, "getafix-paper", "getafix-paper-without-garbage", &[P95(0.75)])?;
                bench.against(scenario, "getafix", "getafix-without-garbage", &[P95(0.75)])?;
            }
        }
    }
    Ok(bench.bars)
}

use Limit::{Loads, P50, P95, P99, Storage};

/// What is measured, and what its ratio may be.
#[derive(Clone, Copy)]
enum Limit {
    Storage(f64),
    P50(f64),
    P95(f64),
    P99(f64),
    Loads(f64),
}

impl Limit {
    fn parts(self) -> (&'static str, fn(&Outcome) -> f64, f64) {
        match self {
            Storage(limit) => ("storage", |outcome| outcome.storage, limit),
            P50(limit) => ("p50_ms", |outcome| outcome.p50_ms, limit),
            P95(limit) => ("p95_ms", |outcome| outcome.p95_ms, limit),
            P99(limit) => ("p99_ms", |outcome| outcome.p99_ms, limit),
            Loads(limit) => ("loads", |outcome| outcome.loads, limit),
        }
    }
}

struct Bench {
    bar: &'static str,
    seeds: u64,
    bars: Vec<Bar>,
}

impl Bench {
    fn against(&mut self, scenario: &str, own: &str, peer: &str, limits: &[Limit]) -> Result<()> {
        let place = known(scenario)?;
        let (figure, peer_figure) = (place.middle(&way(own)?, self.seeds), place.middle(&way(peer)?, self.seeds));
        self.compare(scenario, format!("{own} : {peer}"), &figure, &peer_figure, limits);
        Ok(())
    }

    /// Beside uniform replication of exactly as much storage as was used on average.
    fn curve(&mut self, scenario: &str, replicas: &str) -> Result<()> {
        let (place, own) = (known(scenario)?, format!("getafix-budget-{replicas}"));
        let figure = place.middle(&way(&own)?, self.seeds);
        let peer = format!("uniform-{}", figure.storage.max(1.0));
        let peer_figure = place.middle(&way(&peer)?, self.seeds);
        self.compare(scenario, format!("{own} : {peer}"), &figure, &peer_figure, &[P50(1.0), P99(1.0)]);
        Ok(())
    }

    fn uniform(&mut self, scenario: &str, hot: bool) -> Result<()> {
        let place = known(scenario)?;
        let own: Way = way("getafix")?;
        let figure = place.middle(&own, self.seeds);
        let peer = place.middle(&equal_to(&figure, &place), self.seeds);
        let median = if hot { 0.8 } else { 1.0 };
        self.compare(scenario, "getafix : uniform-equal".into(), &figure, &peer, &[P50(median), P99(1.0)]);
        Ok(())
    }

    fn compare(&mut self, scenario: &str, ways: String, own: &Outcome, peer: &Outcome, limits: &[Limit]) {
        for limit in limits {
            let (what, of, limit) = limit.parts();
            let (figure, peer) = (of(own), of(peer));
            let ratio = figure / peer;
            let met = ratio <= limit;
            let (scenario, ways) = (scenario.to_string(), ways.clone());
            self.bars.push(Bar { bar: self.bar, scenario, ways, what, figure, peer, ratio, limit, met });
        }
    }
}

fn known(scenario: &str) -> Result<Scenario> {
    named(scenario).ok_or_else(|| Error::internal(format!("there is no scenario {scenario:?}")))
}
