//! What BlowFish shows of its shards (NSDI 2016, sections 4 and 5), with navigation as it is.

use forebay_simulation::{
    RepairHost, RepairWay, SHARD_SCENARIOS, ShardCurve, ShardRise, ShardRouting, ShardsRun, SkewRow, repair_chart, repair_csv,
    repair_table, shard_figure, shards, shards_chart, shards_csv, shards_repair, shards_risen, shards_skew, shards_table,
    skew_chart, skew_csv, skew_table,
};

const MINUTE: f64 = 60.0;
/// Seconds of a run after which the load of most scenarios changes.
const CHANGE: f64 = 600.0;

fn run(scenario: &str, seed: u64) -> ShardsRun {
    shards(scenario, ShardRouting::TwoChoices, seed).expect("the scenario is known")
}

fn adapts_and_drains(run: &ShardsRun) {
    let table = || shards_table(run);
    assert!(run.adapted_secs.is_some_and(|secs| secs <= 5.0 * MINUTE), "{}", table());
    assert!(run.drained_secs.is_some_and(|secs| secs <= 15.0 * MINUTE), "{}", table());
    assert_eq!(run.samples.last().map(|sample| sample.overloaded), Some(0), "{}", table());
    assert!(run.moves.iter().all(|moved| moved.secs < CHANGE + 25.0 * MINUTE), "it comes to rest: {}", table());
}

#[test]
fn three_times_the_load_on_all_is_adapted_to_in_five_minutes_and_drained_in_fifteen() {
    for seed in 1..=3 {
        let run = run("uniform", seed);
        let overloaded = run.samples.iter().filter(|sample| sample.overloaded > 0).count();
        assert!(overloaded > 0, "three times the load is too much for the levels at the start");
        adapts_and_drains(&run);
        assert!(run.storage_most <= 0.75, "two layers each, though the backlog asked for more: {}", run.storage_most);
    }
}

#[test]
fn three_times_the_load_is_adapted_to_whatever_part_of_it_is_searches() {
    for scenario in ["mix-0", "mix-50", "mix-100"] {
        let run = run(scenario, 1);
        let table = || shards_table(&run);
        assert!(run.samples.iter().any(|sample| sample.overloaded > 0), "{scenario}: {}", table());
        assert!(run.adapted_secs.is_some_and(|secs| secs <= 15.0 * MINUTE), "{scenario}: {}", table());
        assert!(run.drained_secs.is_some(), "{scenario}: {}", table());
        assert!(run.storage_most > run.storage_start, "{scenario}: {}", table());
    }
}

#[test]
fn three_times_the_load_on_some_takes_layers_from_the_others() {
    for (scenario, hot) in [("skewed-2", 2), ("skewed-5", 5)] {
        for seed in 1..=3 {
            let run = run(scenario, seed);
            adapts_and_drains(&run);
            assert!(run.storage_most <= run.storage_start, "there was no room: {}", shards_table(&run));
            let (higher, lower): (Vec<_>, Vec<_>) =
                run.replicas.iter().filter(|own| own.level != own.start).partition(|own| own.level > own.start);
            assert!(higher.iter().all(|own| own.shard < hot) && lower.iter().all(|own| own.shard >= hot));
            assert_eq!((higher.len(), lower.len()), (hot, hot), "{}", shards_table(&run));
        }
    }
}

#[test]
fn figure_5_a_short_spike_triggers_nothing() {
    for seed in 1..=5 {
        let run = run("spike", seed);
        let longest = run.samples.iter().map(|sample| sample.wait_secs_max).fold(0.0, f64::max);
        assert!(longest > 5.0, "requests waited long: {longest}");
        assert_eq!(run.moves, [], "{}", shards_table(&run));
    }
}

#[test]
fn a_gradual_load_is_followed_up_and_back() {
    for seed in 1..=3 {
        let run = run("gradual", seed);
        let longest = run.samples.iter().map(|sample| sample.wait_secs_max).fold(0.0, f64::max);
        assert!(longest < 20.0, "no queue runs away: {longest}");
        assert!(run.storage_most > run.storage_start, "{}", shards_table(&run));
        assert_eq!(run.storage_end, run.storage_start, "storage returned to the start");
        // Up and down again, once each.
        let turns = |shard: u64| {
            let ups: Vec<bool> =
                run.moves.iter().filter(|moved| moved.shard == shard).map(|moved| moved.to > moved.from).collect();
            ups.windows(2).filter(|pair| pair[0] != pair[1]).count()
        };
        assert!((0..20).all(|shard| turns(shard) == 1), "nothing flaps: {}", shards_table(&run));
    }
}

#[test]
fn figure_10_load_moves_to_the_replicas_that_can_grow() {
    for seed in 1..=4 {
        let run = run("replicas", seed);
        adapts_and_drains(&run);
        let levels: Vec<i64> = run.replicas.iter().map(|own| i64::from(own.level) - i64::from(own.start)).collect();
        assert!(levels[0] == 0 && levels[1] > 0 && levels[2] > 0, "{levels:?}");
        let answered: Vec<u64> = run.replicas.iter().map(|own| own.answered).collect();
        assert!(answered[1] as f64 > 1.4 * answered[0] as f64, "{answered:?}");
        assert!(answered[2] as f64 > 1.4 * answered[0] as f64, "{answered:?}");
        assert!(run.swing < 0.1, "queues swing by {} of the target once drained", run.swing);
        assert!(run.apart.is_some_and(|apart| apart < 0.1), "replicas are {:?} apart while queues are long", run.apart);
    }
}

/// 0.9x + 0.5x + 0.5x instead of three whole replicas: who is left serves slowly at once and is navigated up, copies of the base
/// come one after the other, and a lost 0.9x is built again from its copy in one pass.
#[test]
fn section_5_1_lost_replicas_come_back_by_copies_of_the_smallest() {
    for seed in 1..=4 {
        let run = run("lost", seed);
        adapts_and_drains(&run);
        assert_eq!(run.repaired_secs, Some(9.0 * 20.0), "nine bases of 20 seconds each, the link never idle");
        assert_eq!(run.replicas.len(), 36);
        let again: Vec<_> = run.moves.iter().filter(|moved| (moved.from, moved.to) == (0, 8)).map(|moved| moved.shard).collect();
        assert_eq!(again.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "three had their 0.9x on the lost worker");
        assert_eq!(again.len(), 3, "each in one pass: {}", shards_table(&run));
        assert_eq!(run.storage_end, run.storage_start, "nothing more is kept than before: {}", shards_table(&run));
        assert!(run.swing < 0.1, "{}", run.swing);
    }
}

fn repaired(host: RepairHost) -> (Vec<RepairWay>, String) {
    let ways = shards_repair(host, 1).expect("such a repair can be simulated");
    let table = repair_table(&ways);
    (ways, table)
}

#[test]
fn table_1_a_lost_worker_costs_a_fifth_of_the_bytes_and_two_fifths_of_the_time_of_reed_solomon() {
    let (ways, table) = repaired(RepairHost::ENOUGH);
    let [ours, coded, ..] = ways.as_slice() else { panic!("{table}") };
    assert!((ours.stored - 1.9).abs() < 1e-9 && (coded.stored - 1.2).abs() < 1e-9, "{table}");
    assert!(ours.moved <= coded.moved / 5.0, "{table}");
    let secs = |way: &RepairWay| way.restored_secs.expect("there is room for all of it");
    assert!(secs(ours) <= secs(coded) / 2.5, "with the layers of what was lost: {table}");
    assert!(ours.repaired_secs.is_some_and(|secs| (119.0..=121.0).contains(&secs)), "six bases of 20 seconds each: {table}");
    assert!(ours.during >= 0.88 * ours.before, "{table}");
}

#[test]
fn figure_7_where_memory_is_short_more_is_answered_during_repair_than_by_blocks_or_copies_as_large_as_the_input() {
    let (ways, table) = repaired(RepairHost::SHORT);
    let [ours, coded, three, _] = ways.as_slice() else { panic!("{table}") };
    assert!(ours.during >= 0.88 * ours.before, "{table}");
    assert!(ours.during >= 1.4 * coded.during.max(three.during), "{table}");
    assert_eq!(ours.restored_secs, None, "there is no memory for the layers of the two that are lost: {table}");
    assert_eq!(repair_chart(&ways).lines.len(), 4);
    let lines: usize = ways.iter().map(|way| way.answered.len()).sum();
    assert_eq!(repair_csv(&ways).lines().count(), lines + 1);
}

#[test]
fn a_host_that_does_not_hold_the_large_replicas_is_refused() {
    for host in [RepairHost { memory: 0.5, disk_reads: 3.0 }, RepairHost { memory: 1.0, disk_reads: f64::NAN }] {
        let error = shards_repair(host, 1).unwrap_err().to_string();
        assert!(error.contains("use 0.9 or more"), "{error}");
    }
}

/// A shard whose requests take 2 ms at its start and half as long with twice the layers, looked at each 250 ms.
fn rise() -> ShardRise {
    let levels = (0..20u32).map(|level| (0.3 + 0.05 * f64::from(level), 6_000.0 / (f64::from(level) + 1.0)));
    ShardRise {
        levels: levels.collect(),
        start: 2,
        per_sec: [375.0, 1_125.0],
        waiting_max: 5_000,
        period_secs: 0.25,
        build_secs: 0.5,
        tick_secs: 0.005,
        few: 7,
        periods: 200,
    }
}

#[test]
fn a_rise_that_was_measured_is_predicted_and_layers_that_come_sooner_end_it_sooner() {
    let of = |rise: &ShardRise| shards_risen(rise, 1).unwrap();
    let usual = of(&rise());
    let drained = usual.drained_secs.expect("it has layers to get");
    assert!(usual.peak_secs > 0.25 && usual.peak_secs < drained && drained < 25.0, "{usual:?}");
    let later = of(&ShardRise { build_secs: 3.0, ..rise() });
    assert!(later.peak_secs > usual.peak_secs + 1.0, "{later:?} where {usual:?}");
    let refused = of(&ShardRise { waiting_max: 200, ..rise() });
    assert!(refused.peak_secs > usual.peak_secs + 1.0, "what is refused is no load that it sees: {refused:?} where {usual:?}");
    let never = of(&ShardRise { levels: rise().levels[..3].to_vec(), ..rise() });
    assert_eq!(never.drained_secs, None, "it has no more layers");
}

#[test]
fn a_rise_that_can_not_be_is_refused() {
    for rise in [
        ShardRise { start: 20, ..rise() },
        ShardRise { levels: Vec::new(), ..rise() },
        ShardRise { period_secs: 0.0, ..rise() },
        ShardRise { tick_secs: 0.0, ..rise() },
        ShardRise { per_sec: [1.0, f64::INFINITY], ..rise() },
    ] {
        assert!(shards_risen(&rise, 1).is_err(), "{rise:?}");
    }
}

#[test]
fn two_choices_keep_replicas_closer_together_than_the_shortest_queue() {
    let apart = |routing| shards("replicas", routing, 1).unwrap().apart.unwrap();
    assert!(apart(ShardRouting::TwoChoices) < 0.5 * apart(ShardRouting::JoinShortest));
}

/// Against selective caching by what is sustained. By what is answered of a load that the others can't sustain the figure is
/// 1.4, since most requests go to the few shards that selective caching serves well (the crate's README).
fn figure_8(row: &SkewRow) {
    let table = || skew_table(std::slice::from_ref(row));
    assert!(row.navigated.sustained >= 1.5 * row.selective.sustained, "{}", table());
    assert!(row.navigated.sustained >= 0.89 * row.ideal.sustained, "{}", table());
    assert!(row.navigated.answered >= 0.89 * row.ideal.answered, "{}", table());
    assert!(row.navigated.answered >= row.selective.answered.max(row.even.answered), "{}", table());
    assert!(row.navigated.moved <= 2, "it comes near to rest: {} moves", row.navigated.moved);
    assert!(row.selective_storage >= 1.3 * row.storage, "{} for the same load", row.selective_storage);
}

#[test]
fn selective_caching_takes_as_much_storage_as_the_shards_that_it_keeps_whole() {
    // Of two shards that are asked alike, both answer what they do without layers, or neither.
    let rows = shards_skew(ShardCurve::Paper, 2, 0.0, &[0.5, 0.6], 1).unwrap();
    assert_eq!(rows.iter().map(|row| row.selective_storage).collect::<Vec<_>>(), [0.5, 1.5]);
}

#[test]
fn figure_8_navigation_comes_near_the_ideal_on_twenty_skewed_shards() {
    shards_skew(ShardCurve::Paper, 20, 0.99, &[0.6, 0.65], 1).unwrap().iter().for_each(figure_8);
}

#[test]
fn figure_8_navigation_comes_near_the_ideal_on_a_hundred_skewed_shards() {
    shards_skew(ShardCurve::Paper, 100, 0.99, &[0.6], 1).unwrap().iter().for_each(figure_8);
}

#[test]
fn requests_are_answered_once_or_wait() {
    for scenario in ["uniform", "replicas"] {
        let run = run(scenario, 7);
        let sum = |of: fn(&forebay_simulation::ShardSample) -> f64| run.samples.iter().map(of).sum::<f64>() * 10.0;
        let (came, answered) = (sum(|sample| sample.offered), sum(|sample| sample.answered));
        let waiting = run.samples.last().unwrap().waiting as f64;
        assert!((came - answered - waiting).abs() < 0.5, "{came} came, {answered} were answered, {waiting} wait");
    }
}

#[test]
fn a_run_of_shards_is_a_function_of_its_seed() {
    assert_eq!(run("replicas", 3), run("replicas", 3));
    assert_ne!(run("replicas", 3).samples, run("replicas", 4).samples);
}

#[test]
fn what_is_unknown_is_refused_with_what_is_known() {
    let error = shards("storm", ShardRouting::TwoChoices, 1).unwrap_err().to_string();
    assert!(SHARD_SCENARIOS.iter().all(|(name, _)| error.contains(name)), "{error}");
    assert!("steep".parse::<ShardCurve>().unwrap_err().to_string().contains(ShardCurve::NAMES));
    assert!("any".parse::<ShardRouting>().unwrap_err().to_string().contains(ShardRouting::NAMES));
    assert!(shards_skew(ShardCurve::Paper, 0, 0.99, &[0.6], 1).is_err());
    assert!(shards_skew(ShardCurve::Paper, 20, f64::NAN, &[0.6], 1).is_err());
    assert!(shards_skew(ShardCurve::Paper, 20, 0.99, &[0.4], 1).unwrap_err().to_string().contains("use 0.5 or more"));
}

#[test]
fn runs_and_rows_can_be_read_and_drawn() {
    let run = run("replicas", 1);
    let table = shards_table(&run);
    assert!(table.contains("requests wait too long, and there was room for a layer"), "{table}");
    assert_eq!(shards_csv(&run).lines().count(), run.samples.len() + 1);
    assert_eq!(shards_chart(&run).lines.len(), 4);
    assert!(run.samples.iter().any(|sample| sample.secs == CHANGE));
    let rows = shards_skew(ShardCurve::Succinct, 5, 0.99, &[0.6, 1.0], 1).unwrap();
    assert_eq!((skew_table(&rows).lines().count(), skew_csv(&rows).lines().count()), (3, 3));
    assert!(skew_chart(&rows).svg().contains("selective caching"));
    assert!(shard_figure("spike").is_ok());
    assert!(shard_figure("figure").unwrap_err().to_string().contains("gradual"), "those that there are");
}
