//! Shares follow demand, and no part of a bound is given out twice, whoever dies, comes or starts again.

use forebay_protocol::AheadNeed;
use forebay_types::{ByteSize, MountOptions, OperationId, Standing};

use super::*;
use crate::decide::Stored;

/// Two workers that have each asked for all of the bound for three seconds.
fn two_that_share() -> State {
    let mut state = joined(2);
    for second in 1..=3 {
        rate(&mut state, f64::from(second), 1, u64::MAX);
        rate(&mut state, f64::from(second), 2, u64::MAX);
    }
    state
}

#[test]
fn one_worker_has_the_whole_bound_from_its_first_heartbeat() {
    let mut state = joined(1);
    let (_, share) = beat(&mut state, 0.01, 1, 0);
    assert_eq!(share, MountShare { mount: LAKE, bytes_per_sec: Some(BOUND), burst_bytes: 1 << 20 });
}

#[test]
fn a_mount_without_bound_has_none_for_anyone() {
    let mut state = joined(1);
    let mount = Mount { options: MountOptions::default(), ..lake() };
    state.decide(at(0.1), Event::Stored(Stored::Mount(mount)));
    assert_eq!(beat(&mut state, 1.0, 1, 0).1.bytes_per_sec, None);
    assert_eq!(budget(&mut state, 1.0, 9).share.bytes_per_sec, None);
}

#[test]
fn two_busy_workers_have_half_each_within_two_heartbeats() {
    let mut state = joined(1);
    assert_eq!(rate(&mut state, 0.1, 1, u64::MAX), BOUND);
    register(&mut state, 0.5, 2);
    // The first still holds everything: the second can only start.
    assert_eq!(rate(&mut state, 0.6, 2, u64::MAX), BOUND / 40);
    assert_eq!(rate(&mut state, 1.1, 1, u64::MAX), BOUND / 2);
    assert_eq!(rate(&mut state, 1.6, 2, u64::MAX), BOUND / 2);
    assert_eq!(rate(&mut state, 2.1, 1, u64::MAX), BOUND / 2);
}

#[test]
fn a_busy_worker_gets_nearly_all_beside_an_idle_one() {
    let mut state = joined(2);
    let mut busy = 0;
    for second in 1..=3 {
        busy = rate(&mut state, f64::from(second), 1, u64::MAX);
        rate(&mut state, f64::from(second) + 0.3, 2, 0);
    }
    assert_eq!(busy, BOUND - BOUND / 40);
}

#[test]
fn shares_follow_demand_and_nobody_gets_what_another_still_holds() {
    let mut state = joined(2);
    for second in 1..=3 {
        rate(&mut state, f64::from(second), 1, u64::MAX);
        rate(&mut state, f64::from(second) + 0.5, 2, 0);
    }
    // Now the other way round.
    let second = rate(&mut state, 4.1, 2, u64::MAX);
    assert!(second <= BOUND / 40 + 1, "the first has not given back: {second}");
    let first = rate(&mut state, 4.5, 1, 0);
    let second = rate(&mut state, 5.1, 2, u64::MAX);
    assert_eq!((first, second), (BOUND / 40, BOUND - BOUND / 40));
}

#[test]
fn those_who_must_give_back_and_those_who_wait_for_it_are_woken() {
    let mut state = joined(3);
    for second in 1..=2 {
        (1..=3).for_each(|worker| _ = beat(&mut state, f64::from(second), worker, 0));
    }
    let told = |state: &mut State, now, worker, demand| {
        let (commands, reply) = ask(state, now, heartbeat(worker, 0, demand));
        let Some(ControlReply::Beat { shares, .. }) = reply else { panic!("{reply:?} is no beat") };
        let woken =
            commands.into_iter().find_map(|command| if let Command::Tell(workers) = command { Some(workers) } else { None });
        let woken: Vec<u64> = woken.unwrap_or_default().iter().map(|worker| worker.0).collect();
        (shares[0].bytes_per_sec.unwrap(), woken)
    };
    let third = BOUND / 3;
    let (share, woken) = told(&mut state, 2.5, 2, u64::MAX);
    assert!(share.abs_diff(third) <= 1, "others hold the rest: {share}");
    assert_eq!(woken, [1, 3]);
    assert_eq!(told(&mut state, 2.52, 1, 0), (BOUND / 60, vec![2]));
    let (share, woken) = told(&mut state, 2.54, 2, u64::MAX);
    assert!(share.abs_diff(2 * third) < BOUND / 50, "{share}");
    assert!(woken.is_empty(), "{woken:?}");
    assert_eq!(told(&mut state, 2.56, 3, 0), (BOUND / 60, vec![2]));
    assert_eq!(told(&mut state, 2.58, 2, u64::MAX).0, BOUND - 2 * (BOUND / 60));
    // As it was before, so that nobody has to know.
    assert!(told(&mut state, 2.9, 1, 0).1.is_empty());
}

#[test]
fn background_work_of_one_worker_takes_what_demand_of_another_leaves() {
    let mut state = joined(2);
    let mut both = |seconds: std::ops::RangeInclusive<u32>, demand: u64| {
        let mut share = |now, beat| match ask(&mut state, now, MemberRequest::Heartbeat(beat)).1 {
            Some(ControlReply::Beat { shares, .. }) => shares[0].bytes_per_sec.unwrap(),
            other => panic!("{other:?} is no beat"),
        };
        let mut shares = (0, 0);
        for second in seconds {
            let now = f64::from(second);
            shares.0 = share(now, Heartbeat { demand: vec![(LAKE, demand)], ..blank(1) });
            shares.1 = share(now + 0.3, Heartbeat { background: vec![(LAKE, u64::MAX)], ..blank(2) });
        }
        shares
    };
    assert_eq!(both(1..=4, BOUND / 2), (BOUND / 2, BOUND - BOUND / 2));
    assert_eq!(both(5..=8, u64::MAX), (BOUND - BOUND / 40, BOUND / 40), "it keeps what it starts with");
    assert_eq!(both(9..=12, 0), (BOUND / 40, BOUND - BOUND / 40));
}

#[test]
fn plans_of_all_workers_are_served_in_one_order_behind_demand() {
    let mut state = joined(3);
    let plan = |priority, began_ms, bytes_per_sec| {
        let turn = Standing { priority, began_ms }.turn(OperationId(began_ms), 0);
        vec![AheadNeed { mount: LAKE, turn, bytes_per_sec }]
    };
    let mut all = |seconds: std::ops::RangeInclusive<u32>, demand: u64, second: Vec<AheadNeed>, third: Vec<AheadNeed>| {
        let mut share = |now, beat| match ask(&mut state, now, MemberRequest::Heartbeat(beat)).1 {
            Some(ControlReply::Beat { shares, .. }) => shares[0].bytes_per_sec.unwrap(),
            other => panic!("{other:?} is no beat"),
        };
        let mut shares = [0; 3];
        for second_of_day in seconds {
            let now = f64::from(second_of_day);
            shares[0] = share(now, Heartbeat { demand: vec![(LAKE, demand)], ..blank(1) });
            shares[1] = share(now + 0.2, Heartbeat { ahead: second.clone(), ..blank(2) });
            shares[2] = share(now + 0.4, Heartbeat { ahead: third.clone(), ..blank(3) });
        }
        shares
    };
    let (half, floor) = (BOUND / 2, BOUND / 60);
    let near = |shares: [u64; 3], wanted: [u64; 3]| {
        assert_eq!(shares.iter().sum::<u64>(), BOUND);
        assert!(shares.iter().zip(wanted).all(|(share, wanted)| share.abs_diff(wanted) <= 2), "{shares:?} for {wanted:?}");
    };
    near(all(1..=5, half, plan(0, 10, u64::MAX), plan(0, 11, u64::MAX)), [half, half - floor, floor]);
    near(all(6..=10, half, plan(0, 12, u64::MAX), plan(0, 11, u64::MAX)), [half, floor, half - floor]);
    near(all(11..=15, half, plan(1, 12, u64::MAX), plan(0, 11, u64::MAX)), [half, half - floor, floor]);
    near(all(16..=20, u64::MAX, plan(1, 12, u64::MAX), plan(0, 11, u64::MAX)), [BOUND - 2 * floor, floor, floor]);
    // One plan at two workers has the same from both.
    near(all(21..=25, half, plan(0, 11, u64::MAX), plan(0, 11, u64::MAX)), [half, half / 2, half / 2]);
}

#[test]
fn the_share_of_a_dead_worker_is_free_when_its_lease_ends() {
    let mut state = two_that_share();
    // Worker 2 is silent from second 3 on: it may hold its share until 8.
    for tenth in 40..=79 {
        let now = f64::from(tenth) / 10.0;
        state.decide(at(now), Event::Tick);
        assert_eq!(rate(&mut state, now, 1, u64::MAX), BOUND / 2, "at {now} s");
    }
    state.decide(at(8.1), Event::Tick);
    assert_eq!(rate(&mut state, 8.2, 1, u64::MAX), BOUND);
}

#[test]
fn a_changed_bound_holds_from_the_next_heartbeat() {
    let mut state = two_that_share();
    for (now, bound) in [(4.0, 10_000_000u64), (6.0, 80_000_000)] {
        let options = MountOptions {
            bandwidth: Some(BitRate::from_bytes_per_sec(bound)),
            burst: Some(ByteSize(4 << 20)),
            ..MountOptions::default()
        };
        state.decide(at(now), Event::Stored(Stored::Mount(Mount { options, ..lake() })));
        let (view, share) = beat(&mut state, now + 0.01, 1, u64::MAX);
        assert_eq!(view.unwrap().mounts[0].options.bandwidth.unwrap().bytes_per_sec(), bound);
        assert_eq!((share.bytes_per_sec, share.burst_bytes), (Some(bound / 2), 2 << 20), "half of each");
        assert_eq!(rate(&mut state, now + 0.02, 2, u64::MAX), bound / 2);
    }
}

#[test]
fn after_a_restart_workers_that_have_not_come_back_keep_their_part_for_one_lease() {
    let mut state = restarted(2, &[1, 2]);
    register(&mut state, 0.2, 1);
    for tenth in 3..=49 {
        let now = f64::from(tenth) / 10.0;
        state.decide(at(now), Event::Tick);
        assert_eq!(rate(&mut state, now, 1, u64::MAX), BOUND / 2, "at {now} s");
    }
    // Worker 2 did not come back.
    state.decide(at(5.1), Event::Tick);
    rate(&mut state, 5.2, 1, u64::MAX);
    assert_eq!(rate(&mut state, 5.5, 1, u64::MAX), BOUND);
}

#[test]
fn after_a_restart_with_everyone_back_there_is_no_waiting() {
    let mut state = restarted(2, &[1, 2]);
    register(&mut state, 0.2, 1);
    register(&mut state, 0.3, 2);
    let mut shares = (0, 0);
    for second in 1..=3 {
        shares = (rate(&mut state, f64::from(second), 1, u64::MAX), rate(&mut state, f64::from(second) + 0.1, 2, 0));
    }
    assert_eq!(shares, (BOUND - BOUND / 40, BOUND / 40));
    let mut alone = restarted(2, &[1]);
    register(&mut alone, 0.2, 1);
    assert_eq!(rate(&mut alone, 0.3, 1, 0), BOUND);
}

#[test]
fn who_joins_after_a_restart_can_start_and_gets_no_more_until_others_are_back() {
    let mut before = joined(2);
    let mut shares = [0; 3];
    for second in 1..=3 {
        shares[0] = rate(&mut before, f64::from(second), 1, u64::MAX);
        shares[1] = rate(&mut before, f64::from(second) + 0.3, 2, 0);
    }
    // While nobody answers them they keep their shares, and no more than their parts.
    let kept = [shares[0].min(BOUND / 2), shares[1].min(BOUND / 2)];
    assert_eq!(kept, [BOUND / 2, BOUND / 40]);
    (shares[0], shares[1]) = (kept[0], kept[1]);
    let mut after = restarted(2, &[1, 2]);
    register(&mut after, 0.1, 3);
    for tenth in 2..=20 {
        shares[2] = rate(&mut after, f64::from(tenth) / 10.0, 3, u64::MAX);
        assert_eq!(shares[2], BOUND / 60, "others may hold all of it: a twentieth of an equal part");
    }
    register(&mut after, 2.1, 1);
    register(&mut after, 2.2, 2);
    for second in 3..=6 {
        for worker in 0..3 {
            let now = f64::from(second) + worker as f64 / 10.0;
            shares[worker] = rate(&mut after, now, worker as u64 + 1, u64::MAX);
            assert!(shares.iter().sum::<u64>() <= BOUND, "{shares:?} at {now} s");
        }
    }
    assert!(shares.iter().all(|share| share.abs_diff(BOUND / 3) <= 2), "{shares:?}");
}

#[test]
fn who_joins_after_a_restart_gets_what_nobody_came_back_for() {
    let mut state = restarted(2, &[1]);
    register(&mut state, 0.1, 2);
    assert_eq!(rate(&mut state, 0.2, 2, u64::MAX), BOUND / 40);
    for second in 1..=4 {
        assert_eq!(rate(&mut state, f64::from(second), 2, u64::MAX), BOUND / 40, "at {second} s");
    }
    state.decide(at(5.1), Event::Tick);
    rate(&mut state, 5.2, 2, u64::MAX);
    assert_eq!(rate(&mut state, 5.5, 2, u64::MAX), BOUND);
}

#[test]
fn who_is_back_can_start_beside_one_that_joins_and_has_not_said_what_it_takes() {
    let mut state = restarted(2, &[1, 2]);
    register(&mut state, 0.1, 3);
    register(&mut state, 0.2, 1);
    assert_eq!(rate(&mut state, 0.3, 1, u64::MAX), BOUND / 60, "the one that joins may take all until it says what it takes");
    assert_eq!(rate(&mut state, 0.4, 3, 0), BOUND / 60);
    assert_eq!(rate(&mut state, 0.5, 1, u64::MAX), BOUND / 2 - BOUND / 60);
}

#[test]
fn bursts_of_all_workers_together_are_the_mounts() {
    let mut state = joined(4);
    let bursts: u64 = (1..=4).map(|worker| beat(&mut state, 1.0, worker, 0).1.burst_bytes).sum();
    assert_eq!(bursts, 1 << 20);
}

#[test]
fn two_thousand_workers_beat_in_reasonable_time() {
    let mut state = state();
    for worker in 0..2_000 {
        register(&mut state, 0.0, worker);
    }
    let seen = view(&mut state, 0.0).version;
    let started = forebay_runtime::now();
    for worker in 0..2_000u64 {
        let now = 1.0 + worker as f64 / 2_000.0;
        ask(&mut state, now, heartbeat(worker, seen, worker * 1000));
    }
    // The work of a heartbeat does not grow with the number of workers; unoptimised, and beside other tests.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}
