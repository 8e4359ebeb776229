//! The scenarios by name: the papers', and those in which an edge of a decision shows.

use crate::cluster::Straggler;
use crate::scenario::{Scenario, Workload};
use crate::workload::Micros;

const SECOND: Micros = 1_000_000;

/// The scenarios that have names, and what each is.
pub const NAMES: [(&str, &str); 18] = [
    ("paper", "15 workers, 100 segments, utilisation 0.7, Zipf 0.99: what most figures are of"),
    ("light", "the same at utilisation 0.4"),
    ("busy", "the same at utilisation 0.8"),
    ("zipf-0.5", "the same with nearly even popularity"),
    ("zipf-1.2", "the same with Zipf 1.2"),
    ("zipf-1.5", "the same with Zipf 1.5"),
    ("few", "30 segments: two a worker"),
    ("hot", "12 segments: fewer than workers, so that the hottest need several"),
    ("many", "300 segments: twenty a worker"),
    ("workers-5", "5 workers"),
    ("workers-25", "25 workers"),
    ("fresh", "a new segment, the hottest at once, every 5 windows"),
    ("unequal", "5 of 15 workers at half the speed, utilisation 0.6"),
    ("mixed", "one segment in eight is scanned, of the others only footers are read: a hundredth of the work"),
    ("straggler", "one worker at a fifth of its speed for two minutes of every ten"),
    ("room", "3 workers with room for 26 segments each, 60 segments and 20 that come"),
    ("crowd", "the same with 40 that come: the oldest must go"),
    ("shift", "few segments, and what is read most changes half way: the oldest are the newest from then on"),
];

/// The scenario of that name.
pub fn named(name: &str) -> Option<Scenario> {
    let paper = || Scenario::new(15, 100, 0.7, 0.99);
    let mut scenario = match name {
        "paper" => paper(),
        "light" => Scenario::new(15, 100, 0.4, 0.99),
        "busy" => Scenario::new(15, 100, 0.8, 0.99),
        "zipf-0.5" => Scenario::new(15, 100, 0.7, 0.5),
        "zipf-1.2" => Scenario::new(15, 100, 0.7, 1.2),
        "zipf-1.5" => Scenario::new(15, 100, 0.7, 1.5),
        "few" => Scenario::new(15, 30, 0.7, 0.99),
        "hot" => Scenario::new(15, 12, 0.7, 0.99),
        "many" => Scenario::new(15, 300, 0.7, 0.99),
        "workers-5" => Scenario::new(5, 100, 0.7, 0.99),
        "workers-25" => Scenario::new(25, 100, 0.7, 0.99),
        "fresh" => paper(),
        "unequal" => Scenario::new(15, 100, 0.6, 0.99),
        "straggler" | "mixed" => paper(),
        "room" | "crowd" => Scenario::new(3, 60, 0.6, 0.99),
        "shift" => Scenario::new(15, 12, 0.7, 0.99),
        _ => return None,
    };
    let window = scenario.cluster.window;
    match (name, &mut scenario.workload) {
        ("fresh", Workload::Synthetic(load)) => {
            (load.fresh_every, load.fresh_most) = (Some(5 * window + 7 * SECOND), 7);
        }
        ("unequal", _) => scenario.cluster.speeds = vec![0.5; 5],
        ("mixed", _) => {
            scenario.cluster.work = vec![0.01; 8];
            scenario.cluster.work[3] = 1.0;
        }
        ("straggler", _) => {
            let slow = |at: u64| Straggler { worker: 3, from: at * 10 * window, until: (at * 10 + 2) * window, factor: 0.2 };
            scenario.cluster.stragglers = (1..4).map(slow).collect();
        }
        ("room" | "crowd", Workload::Synthetic(load)) => {
            scenario.cluster.room = Some(26);
            let (every, most) = if name == "room" { (window + 13 * SECOND, 20) } else { (window / 2 + 7 * SECOND, 40) };
            (load.fresh_every, load.fresh_most) = (Some(every), most);
        }
        ("shift", Workload::Synthetic(load)) => {
            // Not at the end of a window, as it happens.
            load.turned_at = Some(24 * window + 30 * SECOND);
        }
        _ => {}
    }
    Some(scenario)
}
