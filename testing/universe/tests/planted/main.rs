//! Defects that were put back are found by worlds as they are, and by few faults.
//!
//! Only with the feature `planted`: what is shipped has no defect to be put back.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::process::Command;

use serde_json::Value;

/// Faults and load of a world, in simulated seconds.
const SECONDS: &str = "20";
/// Calls in ten simulated seconds: so many that few worlds are enough.
const OPS: &str = "280";
/// Faults at most that are left of a world that found something.
const FEWEST_MAX: usize = 5;

/// The first world from `seed` on that has a violation, with the defect or without one.
fn found(planted: Option<&str>, (seed, seeds): (u64, u64), with: &[&str]) -> Option<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay-universe"));
    command.args(["--seed", &seed.to_string(), "--seeds", &seeds.to_string(), "--seconds", SECONDS]);
    command.args(["--ops", OPS, "--until-one-fails"]).args(with);
    if let Some(planted) = planted {
        command.args(["--planted", planted]);
    }
    let output = command.output().unwrap();
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let mut worlds = lines.filter(|line| !line.is_empty()).map(|line| serde_json::from_slice::<Value>(line).unwrap());
    worlds.find(|world| world["violations"] != 0)
}

/// A defect is found from a seed on, in so many worlds, and without it nothing is.
fn is_found(planted: &str, seed: u64, seeds: u64) {
    is_found_with(planted, (seed, seeds), &[]);
}

/// The same in worlds with more in them.
fn is_found_with(planted: &str, seeds: (u64, u64), with: &[&str]) {
    let (seed, _) = seeds;
    let world = found(Some(planted), seeds, with).unwrap_or_else(|| panic!("{planted} goes unseen from seed {seed} on"));
    let left = world["fewest_faults"]["faults"].as_array().unwrap().len();
    assert!(left <= FEWEST_MAX, "{planted}: {world}");
    let same = world["seed"].as_u64().unwrap();
    assert!(found(None, (same, 1), with).is_none(), "{planted}: the world of seed {same} fails without it");
}

#[test]
fn a_lease_that_lapsed_is_found() {
    is_found("lease-lapsed", 1, 3);
}

#[test]
fn the_order_of_two_writers_is_found() {
    is_found("writers-order", 1, 10);
}

#[test]
fn a_stale_read_after_a_stopped_peer_is_found() {
    is_found("stale-after-stop", 1, 10);
}

#[test]
fn an_acknowledgement_before_others_have_heard_is_found() {
    is_found("ack-before-told", 1, 10);
}

#[test]
fn damaged_pages_that_a_restart_takes_over_are_found() {
    is_found("damage-adopted", 1, 30);
}

#[test]
fn damaged_pages_of_another_worker_that_are_taken_over_are_found() {
    is_found("replica-adopted", 1, 30);
}

#[test]
fn directories_that_are_moved_into_each_other_are_found() {
    is_found("circle-in-rename", 1, 10);
}

#[test]
fn a_reference_of_another_length_than_its_block_is_found() {
    is_found("forged-reference", 1, 10);
}

#[test]
fn a_file_that_a_write_behind_its_end_makes_large_is_found() {
    is_found("sparse-giant", 1, 3);
}

#[test]
fn a_write_through_the_gateway_that_no_worker_hears_of_is_found() {
    is_found("untold-by-gateway", 2, 4);
}

#[test]
fn pins_that_are_freed_under_a_reader_are_found() {
    is_found("pins-freed", 1, 20);
}

#[test]
fn a_manifest_before_its_data_is_found() {
    is_found("manifest-first", 1, 10);
}

#[test]
fn a_lost_status_of_a_task_is_found() {
    is_found_with("lost-status", (1, 60), &["--queries"]);
}
