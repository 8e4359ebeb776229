//! What navigation does in simulation, by the code that decides in workers: BlowFish's loads (NSDI 2016, section 5) on its paper's curve.

use forebay_bench_harness::{Bar, Figure, line};
use forebay_simulation::{
    BudgetFigures, RepairHost, RepairWay, ShardCurve, ShardRouting, SkewRow, budget, shards, shards_repair, shards_skew,
};
use forebay_types::{Error, Result};

const SEED: u64 = 1;
/// How skewed the load on shards of fixed storage is, and that storage over the input.
const THETA: f64 = 0.99;
const STORAGE: f64 = 0.6;
/// Scenarios with three times the load, and the seconds within which shards are to adapt to it and to have drained their queues.
const RISES: [(&str, f64, f64); 3] = [("uniform", 300.0, 900.0), ("skewed-2", 120.0, 300.0), ("skewed-5", 120.0, 300.0)];

pub(crate) fn figures() -> Result<()> {
    for (scenario, adapted, drained) in RISES {
        let run = shards(scenario, ShardRouting::default(), SEED)?;
        let secs = |secs: Option<f64>| secs.unwrap_or(f64::INFINITY);
        line(format!("simulated {scenario}: adapted"), secs(run.adapted_secs), "s", Bar::ValueAtMost(adapted));
        line(format!("simulated {scenario}: drained"), secs(run.drained_secs), "s", Bar::ValueAtMost(drained));
    }
    let run = shards("replicas", ShardRouting::default(), SEED)?;
    let swing = run.swing * 100.0;
    line("simulated replicas: swing of queues once drained, of the target", swing, "%", Bar::ValueAtMost(10.0));
    for count in [20, 100] {
        shards_skew(ShardCurve::Paper, count, THETA, &[STORAGE], SEED)?.iter().for_each(tell);
    }
    repair()
}

/// Table 1 and figure 7, beside each rival.
fn repair() -> Result<()> {
    let enough = shards_repair(RepairHost::ENOUGH, SEED)?;
    let (ours, rivals) = first(&enough)?;
    for rival in rivals {
        let is_coded = rival.way.starts_with("Reed-Solomon");
        let bar = |most: f64| if is_coded { Bar::RatioAtMost(most) } else { Bar::Nothing };
        let figure = |what: &str, value: f64, unit, peer: f64, bar| {
            Figure::new(format!("simulated repair, beside {}: {what}", rival.way), value, unit, rival.way, peer, bar).print(true);
        };
        figure("bytes moved", ours.moved, "x", rival.moved, bar(0.2));
        let secs = |secs: Option<f64>| secs.unwrap_or(f64::INFINITY);
        figure("time", secs(ours.restored_secs), "s", secs(rival.restored_secs), bar(0.4));
        figure("answered meanwhile", ours.during, "requests/s", rival.during, Bar::Nothing);
    }
    let what = "simulated repair: answered meanwhile";
    Figure::new(what, ours.during, "requests/s", "before", ours.before, Bar::RatioAtLeast(0.88)).print(true);
    for host in [RepairHost::SHORT, RepairHost::SHORT_QUICK] {
        short(host)?;
    }
    Ok(())
}

/// What is answered meanwhile where nothing as large as the input is in memory.
fn short(host: RepairHost) -> Result<()> {
    let ways = shards_repair(host, SEED)?;
    let (ours, rivals) = first(&ways)?;
    let what = format!("simulated repair, memory for {}x and {} disk reads a second", host.memory, host.disk_reads * 1e3);
    let name = format!("{what}: answered meanwhile");
    Figure::new(name, ours.during, "requests/s", "before", ours.before, Bar::RatioAtLeast(0.88)).print(true);
    for rival in rivals {
        // Quick disks are told for the record: how far memory is short is theirs to say.
        let is_held = host == RepairHost::SHORT && !rival.way.starts_with("one copy");
        let bar = if is_held { Bar::RatioAtLeast(1.4) } else { Bar::Nothing };
        let name = format!("{what}, beside {}: answered meanwhile", rival.way);
        Figure::new(name, ours.during, "requests/s", rival.way, rival.during, bar).print(true);
    }
    Ok(())
}

/// Ours, and the others.
fn first(ways: &[RepairWay]) -> Result<(&RepairWay, &[RepairWay])> {
    ways.split_first().ok_or_else(|| Error::internal("no way was simulated"))
}

/// One memory for blocks, columns, layers and shuffles.
pub(crate) fn budget_figures() -> Result<()> {
    let BudgetFigures { of_best, of_equal, again_windows, swing } = budget(SEED)?;
    line("simulated budget: speed, of the best fixed split's", of_best * 100.0, "%", Bar::ValueAtLeast(90.0));
    line("simulated budget: speed, of the equal split's", of_equal * 100.0, "%", Bar::ValueAtLeast(120.0));
    line("simulated budget: windows until as fast again", again_windows as f64, "windows", Bar::ValueAtMost(5.0));
    line("simulated budget: swing of rooms at rest", swing * 100.0, "%", Bar::ValueAtMost(5.0));
    Ok(())
}

/// Figure 8.
fn tell(row: &SkewRow) {
    let what = format!("simulated skew, {} shards on {}x of storage", row.shards, row.storage);
    let (ours, ideal, selective) = (&row.navigated, &row.ideal, &row.selective);
    let ratio = |name: &str, value: f64, unit, peer: &str, peer_value: f64, bar| {
        Figure::new(format!("{what}: {name}"), value, unit, peer, peer_value, bar).print(true);
    };
    ratio("answered", ours.answered, "requests/s", "the ideal division", ideal.answered, Bar::RatioAtLeast(0.89));
    let caching = "selective caching";
    ratio("answered, beside caching", ours.answered, "requests/s", caching, selective.answered, Bar::RatioAtLeast(1.5));
    ratio("sustained", ours.sustained, "requests/s", caching, selective.sustained, Bar::RatioAtLeast(1.5));
    ratio("storage for what it sustains", row.storage, "x", caching, row.selective_storage, Bar::RatioAtMost(1.0 / 1.3));
}
