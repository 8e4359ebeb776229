//! The workers that a block is offered to.

use std::time::Duration;

use forebay_nodes::{Candidate, Full, Location, StorageClass, offer};
use proptest::prelude::*;

fn at(worker: u64, location: &'static str) -> Candidate<'static> {
    Candidate { worker, location, has_disk: true, is_beside: false, is_full: false }
}

fn rack(number: u32) -> Location {
    format!("rack{number}").parse().unwrap()
}

#[test]
fn the_location_goes_before_the_worker_beside_and_that_before_the_others() {
    let workers = [at(1, "rack1"), at(2, "rack2"), Candidate { is_beside: true, ..at(3, "rack1") }, at(4, "rack2")];
    let order = |location: Location| offer(&workers, &location, StorageClass::Dram);
    assert_eq!(order(Location::default()), [3, 1, 2, 4]);
    assert_eq!(order(rack(2)), [2, 4, 3, 1]);
    assert_eq!(order(rack(1)), [3, 1, 2, 4]);
    assert_eq!(order(rack(3)), [3, 1, 2, 4], "nobody is there: anywhere");
}

#[test]
fn who_was_full_is_asked_last() {
    let workers = [Candidate { is_full: true, ..at(1, "rack1") }, at(2, "rack1"), at(3, "rack2")];
    assert_eq!(offer(&workers, &rack(1), StorageClass::Dram), [2, 3, 1]);
}

#[test]
fn blocks_on_disk_go_to_workers_with_one() {
    let without = |worker, location| Candidate { has_disk: false, ..at(worker, location) };
    let workers = [without(1, "rack1"), at(2, "rack2")];
    assert_eq!(offer(&workers, &rack(1), StorageClass::Disk), [2]);
    assert_eq!(offer(&workers, &rack(1), StorageClass::Dram), [1, 2]);
    assert_eq!(offer(&workers[..1], &rack(1), StorageClass::Disk), [1], "which says so");
}

#[test]
fn who_was_full_is_not_for_long() {
    let (mut full, now) = (Full::default(), Duration::from_secs(100));
    full.note(1, now);
    assert!(full.is(1, now + Duration::from_millis(999)) && !full.is(2, now));
    assert!(!full.is(1, now + Duration::from_secs(1)));
}

proptest! {
    #[test]
    fn every_worker_that_can_take_a_block_is_asked_once(
        workers in prop::collection::vec((0u32..3, any::<bool>(), any::<bool>(), any::<bool>()), 0..8),
        wanted in 0u32..4,
    ) {
        let labels = ["rack0", "rack1", "rack2"];
        let workers: Vec<Candidate<'_>> = (1..).zip(&workers).map(|(worker, (label, has_disk, is_beside, is_full))| {
            let location = labels[*label as usize];
            Candidate { worker, location, has_disk: *has_disk, is_beside: *is_beside, is_full: *is_full }
        }).collect();
        let location = rack(wanted);
        let order = offer(&workers, &location, StorageClass::Dram);
        let mut all = order.clone();
        all.sort_unstable();
        prop_assert_eq!(all, (1..=workers.len() as u64).collect::<Vec<_>>());
        let of = |worker: u64| workers[worker as usize - 1];
        for pair in order.windows(2) {
            let (first, second) = (of(pair[0]), of(pair[1]));
            prop_assert!(first.is_full <= second.is_full);
            let is_there = |it: Candidate<'_>| location.is_at(it.location);
            prop_assert!(first.is_full != second.is_full || is_there(first) >= is_there(second));
        }
    }
}
