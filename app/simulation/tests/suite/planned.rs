//! Plans of a worker that is described.

use forebay_navigation::Settings;
use forebay_simulation::{ShardPlanned, shards_planned, shards_planned_table};
use serde_json::{Value, json};

/// A shard of two levels and the queues that it has.
fn replica(shard: &str, level: u32, queue: &[u32], arrived: u32) -> Value {
    let levels = json!([{"bytes": "100MiB", "us": 100_000}, {"bytes": "110MiB", "us": 1_000}]);
    let arrived = vec![arrived; queue.len()];
    json!({"shard": shard, "levels": levels, "level": level, "queue": queue, "arrived": arrived})
}

fn planned(room: &str, replicas: &[Value]) -> Vec<ShardPlanned> {
    shards_planned(&json!({"room": room, "replicas": replicas}).to_string(), &Settings::default()).expect("it can be read")
}

fn moves(planned: &[ShardPlanned]) -> Vec<(&str, u32, u32)> {
    planned.iter().filter(|planned| planned.moves()).map(|one| (one.shard.as_str(), one.from, one.to)).collect()
}

#[test]
fn a_shard_whose_requests_wait_gets_a_layer_and_one_with_a_spike_does_not() {
    let mut spike = [0; 40];
    spike[20] = 4;
    let planned = planned("1GiB", &[replica("busy", 0, &[200; 40], 200), replica("spike", 0, &spike, 1)]);
    assert_eq!(planned.len(), 80);
    assert_eq!(moves(&planned), [("busy", 0, 1)]);
    assert!(planned.iter().any(|one| one.shard == "spike" && one.why.contains("now, but not on average")), "{planned:?}");
    let table = shards_planned_table(&planned);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "titles, the move, and how both stand:\n{table}");
    assert!(lines[1].contains("busy") && lines[1].contains("0 to 1"), "{table}");
}

#[test]
fn without_room_an_idle_shard_gives_and_both_are_called_by_their_names() {
    let planned = planned("210MiB", &[replica("busy", 0, &[200; 20], 200), replica("idle", 1, &[0; 20], 0)]);
    assert_eq!(moves(&planned), [("busy", 0, 1), ("idle", 1, 0)]);
    let why: Vec<&str> = planned.iter().filter(|one| one.moves()).map(|one| one.why.as_str()).collect();
    assert!(why[0].contains("idle gave room") && why[1].contains("went to busy"), "{why:?}");
}

#[test]
fn a_cache_lends_room_for_a_layer_until_its_blocks_save_more() {
    let busy = replica("busy", 0, &[200; 40], 200);
    // The layer saves 20 requests a second 99 ms each: 198,000 us a second and MiB.
    let saves_us = [vec![1_000.0; 20], vec![1e6; 20]].concat();
    let worker = json!({"room": "105MiB", "replicas": [busy], "cache": {"most": "160MiB", "saves_us": saves_us}});
    let planned = shards_planned(&worker.to_string(), &Settings::default()).unwrap();
    assert_eq!(moves(&planned), [("busy", 0, 1), ("busy", 1, 0)]);
    let lent = |secs: f64| planned.iter().find(|one| one.secs == secs).and_then(|one| one.lent);
    assert_eq!((lent(0.0), lent(190.0), lent(200.0)), (Some(0), Some(5 << 20), Some(0)));
    let why: Vec<&str> = planned.iter().filter(|one| one.moves()).map(|one| one.why.as_str()).collect();
    assert!(why[0].contains("there was room") && why[1].contains("less room"), "{why:?}");
    let without = json!({"room": "105MiB", "replicas": worker["replicas"]});
    assert_eq!(moves(&shards_planned(&without.to_string(), &Settings::default()).unwrap()), []);
}

#[test]
fn a_pin_takes_room_of_others_but_not_of_what_is_frozen() {
    let mut pinned = replica("pinned", 0, &[0; 3], 0);
    pinned["pin"] = 1.into();
    let mut idle = replica("idle", 1, &[0; 3], 0);
    let given = planned("210MiB", &[pinned.clone(), idle.clone()]);
    assert_eq!(moves(&given), [("pinned", 0, 1), ("idle", 1, 0)]);
    let why: Vec<&str> = given.iter().filter(|one| one.moves()).map(|one| one.why.as_str()).collect();
    assert!(why[0].contains("pinned at more") && why[1].contains("went to pinned"), "{why:?}");
    idle["frozen"] = true.into();
    let kept = planned("210MiB", &[pinned, idle]);
    assert_eq!(moves(&kept), []);
    let why: Vec<&str> = kept.iter().take(2).map(|one| one.why.as_str()).collect();
    assert!(why[0].contains("no room") && why[1].contains("frozen"), "{why:?}");
}

#[test]
fn what_can_t_be_planned_is_refused_with_what_is_wrong_with_it() {
    let refused = |worker: Value, what: &str| {
        let error = shards_planned(&worker.to_string(), &Settings::default()).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    };
    let one = || replica("one", 0, &[1, 2], 1);
    refused(json!({"room": "1GiB"}), "isn't of the form");
    refused(json!({"room": "1GiB", "replicas": []}), "no replica");
    refused(json!({"room": "1GiB", "replicas": [one(), one()]}), "twice");
    refused(json!({"room": "1GiB", "replicas": [one(), replica("two", 0, &[1], 1)]}), "a number a period");
    refused(json!({"room": "1GiB", "replicas": [replica("one", 0, &[], 1)]}), "0 periods");
    refused(json!({"room": "1GiB", "replicas": [replica("one", 2, &[1], 1)]}), "level");
    refused(json!({"room": "1MiB", "replicas": [one()]}), "room");
    let cache = |saves_us: Value| json!({"room": "1GiB", "replicas": [one()], "cache": {"most": "1GiB", "saves_us": saves_us}});
    refused(cache(json!([1.0])), "2 periods");
    refused(cache(json!([1.0, -1.0])), "can't save");
}
