//! More shards, or fewer: no key is lost or doubled, and no change that was acknowledged.

use forebay_navigation::{
    KeptAt, LogState, Piece, SHARDS_MAX, SwitchLimits, SwitchStep, TAIL_BYTES_MAX, hashes, may_switch, merged, pieces, recut,
    shards_for, split, start, switch, tails_fit,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// As the specification has it.
fn shard_of(hash: u64, shards: u32) -> u32 {
    ((u128::from(hash) * u128::from(shards)) >> 64) as u32
}

proptest! {
    #[test]
    fn each_hash_is_in_the_one_shard_that_its_number_says(shards in 1..=SHARDS_MAX, hash in any::<u64>()) {
        let shard = shard_of(hash, shards);
        prop_assert!(hashes(shard, shards).contains(&u128::from(hash)));
        let (first, last) = (hashes(0, shards), hashes(shards - 1, shards));
        prop_assert_eq!((first.start, last.end), (0u128, 1u128 << 64));
        if shard > 0 {
            prop_assert_eq!(hashes(shard - 1, shards).end, hashes(shard, shards).start);
        }
    }

    #[test]
    fn a_key_comes_from_a_shard_that_is_named(before in 1..300u32, after in 1..300u32, some in vec(any::<u64>(), 1..50)) {
        let cut = recut(before, after).unwrap();
        prop_assert_eq!(cut.len(), after as usize);
        for hash in some {
            let from = &cut[shard_of(hash, after) as usize];
            prop_assert!(from.iter().any(|share| share.shard == shard_of(hash, before)));
        }
        // All of each goes somewhere, once.
        let mut went = vec![0.0f64; before as usize];
        for share in cut.iter().flatten() {
            prop_assert!(share.part > 0.0 && share.part <= 1.0);
            went[share.shard as usize] += share.part;
        }
        prop_assert!(went.iter().all(|part| (part - 1.0).abs() < 1e-9), "{:?}", went);
        prop_assert!(cut.iter().all(|from| from.is_sorted_by_key(|share| share.shard)));
        // No more is read for one than its keys make likely.
        let widest = before.div_ceil(after) as usize + 1;
        prop_assert!(cut.iter().all(|from| from.len() <= widest));
    }

    #[test]
    fn what_is_kept_for_keys_is_kept_for_them_afterwards(
        before in 1..20u32, after in 1..20u32, sizes in vec(0.05..4.0f64, 20), inputs in vec(1.0..1e9f64, 20),
    ) {
        let kept = |shard: u32, part: f64| KeptAt { size: sizes[shard as usize], bytes: part * inputs[shard as usize] };
        let (mut bytes, mut input) = (0.0f64, 0.0f64);
        for from in recut(before, after).unwrap() {
            let from: Vec<KeptAt> = from.iter().map(|share| kept(share.shard, share.part)).collect();
            let size = start(&from).unwrap();
            let all = |of: fn(f64, f64) -> f64, first: f64| from.iter().map(|kept| kept.size).fold(first, of);
            prop_assert!(all(f64::min, f64::INFINITY) <= size && size <= all(f64::max, 0.0));
            let of_it: f64 = from.iter().map(|kept| kept.bytes).sum();
            bytes += size * of_it;
            input += of_it;
        }
        let now: f64 = (0..before).map(|shard| kept(shard, 1.0)).map(|kept| kept.size * kept.bytes).sum();
        let whole: f64 = (0..before).map(|shard| kept(shard, 1.0).bytes).sum();
        prop_assert!((bytes / now - 1.0).abs() < 1e-9 && (input / whole - 1.0).abs() < 1e-9, "{} of {}", bytes, now);
    }

    #[test]
    fn nothing_that_was_acknowledged_is_lost_while_others_write_and_processes_die(
        shards in 1..5usize, writes in vec(vec((0..5usize, 0..20u64), 0..6), 1..60), rounds_max in 0..6u32, tail_max in 0..30u64, dies in 1..9usize,
    ) {
        let limits = SwitchLimits { tail_max, rounds_max };
        let mut old: Vec<Log> = vec![Log::default(); shards];
        let mut new: Vec<Vec<u64>> = vec![Vec::new(); shards];
        let (mut round, mut drawn, mut steps) = (0u32, 0u64, 0usize);
        let mut writes = writes.into_iter();
        let ended = loop {
            let seen: Vec<LogState> = old.iter().zip(&new).map(|(log, new)| log.state(new.len())).collect();
            // Others write after the logs were looked at.
            for (log, objects) in writes.next().into_iter().flatten() {
                old[log % shards].write(objects, &mut drawn);
            }
            steps += 1;
            prop_assert!(steps < 100, "it comes to an end");
            if steps % dies == 0 && steps < 50 {
                // The parts of one that died are garbage: the next one begins anew, with logs as they were left.
                (new, round) = (vec![Vec::new(); shards], 0);
                continue;
            }
            match switch(&seen, round, &limits) {
                SwitchStep::Replay(logs) => {
                    prop_assert!(!logs.is_empty());
                    for log in logs.into_iter().map(|log| log as usize) {
                        new[log] = old[log].objects[..seen[log].end as usize].to_vec();
                    }
                    round += 1;
                }
                // One after the other: it may die in between.
                SwitchStep::Seal(logs) => old[logs[0] as usize].is_sealed = true,
                end => break end,
            }
        };
        match ended {
            SwitchStep::Switch => {
                let acknowledged: Vec<&Vec<u64>> = old.iter().map(|log| &log.objects).collect();
                prop_assert_eq!(new.iter().collect::<Vec<_>>(), acknowledged);
            }
            _ => prop_assert!(old.iter().all(|log| !log.is_sealed), "who gives up has ended nothing"),
        }
    }
}

/// A log that takes objects until it is sealed; each that it takes is acknowledged.
#[derive(Clone, Default)]
struct Log {
    objects: Vec<u64>,
    is_sealed: bool,
}

impl Log {
    fn write(&mut self, objects: u64, drawn: &mut u64) {
        for _ in 0..objects {
            *drawn += 1;
            if !self.is_sealed {
                self.objects.push(*drawn);
            }
        }
    }

    fn state(&self, replayed: usize) -> LogState {
        LogState { next: replayed as u64, end: self.objects.len() as u64, is_sealed: self.is_sealed }
    }
}

#[test]
fn shards_that_double_are_each_cut_in_two() {
    for (target, from) in recut(4, 8).unwrap().iter().enumerate() {
        let shares: Vec<(u32, f64)> = from.iter().map(|share| (share.shard, share.part)).collect();
        assert_eq!(shares, [(target as u32 / 2, 0.5)]);
    }
    let joined = recut(4, 2).unwrap();
    assert_eq!(joined[1].iter().map(|share| (share.shard, share.part)).collect::<Vec<_>>(), [(2, 1.0), (3, 1.0)]);
    for (before, after) in [(0, 1), (1, 0), (SHARDS_MAX + 1, 1), (1, SHARDS_MAX + 1)] {
        recut(before, after).unwrap_err();
    }
}

#[test]
fn what_logs_have_left_has_to_fit_into_each_new_shard() {
    let half = TAIL_BYTES_MAX / 2 + 1;
    let fits = |bytes: &[u64], after| tails_fit(bytes, &recut(bytes.len() as u32, after).unwrap());
    assert!(fits(&[half, half, half, half], 4) && fits(&[half, half], 8));
    assert!(!fits(&[half, half, half, half], 2), "two of them go into one");
    assert!(fits(&[half, 0, half, 0], 2) && !fits(&[0, TAIL_BYTES_MAX + 1], 5));
    assert!(!fits(&[u64::MAX, u64::MAX], 1));
}

#[test]
fn what_was_merged_since_the_cut_may_be_too_much_already() {
    let limits = SwitchLimits { tail_max: 10, rounds_max: 0 };
    assert!(may_switch(&[5, 7], [5, 7], &limits) && may_switch(&[5, 7], [10, 12], &limits));
    assert!(!may_switch(&[5, 7], [10, 13], &limits) && !may_switch(&[1, 1], [u64::MAX, u64::MAX], &limits));
}

#[test]
fn a_size_says_how_many() {
    let counts = [(0u64, 10u64, 1u32), (10, 10, 1), (11, 10, 2), (u64::MAX, u64::MAX, 1), (4096, 1, SHARDS_MAX)];
    counts.iter().for_each(|(input, each, shards)| assert_eq!(shards_for(*input, *each).unwrap(), *shards));
    for (input, each) in [(4097, 1), (1, 0), (u64::MAX, 1)] {
        shards_for(input, each).unwrap_err();
    }
}

#[test]
fn where_nothing_is_kept_nothing_is_said() {
    let kept = |size, bytes| KeptAt { size, bytes };
    assert_eq!(start(&[]), None);
    assert_eq!(start(&[kept(0.0, 5.0), kept(0.5, 0.0), kept(f64::NAN, 1.0)]), None);
    assert_eq!(start(&[kept(0.5, 3.0), kept(0.0, 5.0), kept(0.9, 1.0)]), Some(0.6));
}

#[test]
fn logs_are_ended_when_little_is_left_and_not_again() {
    let limits = SwitchLimits { tail_max: 4, rounds_max: 2 };
    let log = |next, end, is_sealed| LogState { next, end, is_sealed };
    assert_eq!(switch(&[log(1, 9, false), log(3, 3, false)], 0, &limits), SwitchStep::Replay(vec![0]));
    assert_eq!(switch(&[log(1, 9, false), log(3, 3, false)], 2, &limits), SwitchStep::GiveUp);
    assert_eq!(switch(&[log(7, 9, false), log(3, 5, false)], 2, &limits), SwitchStep::Seal(vec![0, 1]));
    // One was ended: there is no way back, however much came into the other.
    assert_eq!(switch(&[log(7, 9, true), log(3, 99, false)], 9, &limits), SwitchStep::Seal(vec![1]));
    assert_eq!(switch(&[log(7, 9, true), log(99, 99, true)], 9, &limits), SwitchStep::Replay(vec![0]));
    assert_eq!(switch(&[log(9, 9, true), log(99, 99, true)], 9, &limits), SwitchStep::Switch);
}

#[test]
fn the_largest_ranges_are_cut_and_the_smallest_neighbours_become_one() {
    let said = |pieces: Vec<Piece>| pieces.into_iter().map(|piece| (piece.shards, piece.parts)).collect::<Vec<_>>();
    let bytes = [10, 70, 20, 5, 6];
    assert_eq!(said(pieces(&bytes, 5).unwrap()), (0..5).map(|shard| (shard..shard + 1, 1)).collect::<Vec<_>>());
    assert_eq!(said(pieces(&bytes, 8).unwrap())[1], (1..2, 4));
    assert_eq!(said(pieces(&bytes, 3).unwrap()), [(0..1, 1), (1..2, 1), (2..5, 1)]);
    assert_eq!(said(pieces(&[7, 7], 3).unwrap()), [(0..1, 2), (1..2, 1)]);
    assert_eq!(said(split(&bytes, 4).unwrap())[3..], [(3..4, 1), (4..5, 2)]);
    assert_eq!(said(merged(&bytes, 3).unwrap())[2..], [(2..3, 1), (3..5, 1)]);
    let most = vec![1; SHARDS_MAX as usize];
    for wrong in [pieces(&bytes, 0), pieces(&bytes, SHARDS_MAX + 1), pieces(&[], 1), split(&bytes, 5), split(&most, 0)] {
        wrong.unwrap_err();
    }
    for shard in [4, 5, u32::MAX] {
        merged(&bytes, shard).unwrap_err();
    }
}

proptest! {
    #[test]
    fn each_shard_is_in_one_piece_and_there_are_as_many_as_are_wanted(bytes in vec(any::<u64>(), 1..40), count in 1..60u32) {
        let all = pieces(&bytes, count).unwrap();
        prop_assert_eq!(all.iter().map(|piece| piece.parts).sum::<u32>(), count);
        prop_assert!(all.iter().all(|piece| piece.parts == 1 || piece.shards.len() == 1));
        let shards: Vec<u32> = all.into_iter().flat_map(|piece| piece.shards).collect();
        prop_assert_eq!(shards, (0..bytes.len() as u32).collect::<Vec<_>>());
    }
}
