//! Budgets of clients: none is made of what a worker still holds, and all of it goes back when the last lease ends.

use forebay_types::ErrorKind;

use super::*;

/// A cluster of one busy worker, three seconds old, and the time.
fn busy() -> (State, f64) {
    let mut state = joined(1);
    for second in 1..=3 {
        assert_eq!(rate(&mut state, f64::from(second), 1, u64::MAX), BOUND);
    }
    (state, 3.0)
}

fn bytes_per_sec(lease: BudgetLease) -> u64 {
    lease.share.bytes_per_sec.expect("lake has a bound")
}

#[test]
fn a_client_gets_a_twentieth_once_workers_have_given_it_back() {
    let (mut state, now) = busy();
    let first = budget(&mut state, now + 0.5, 70);
    assert!(bytes_per_sec(first) <= BOUND / 1000, "the worker still holds everything: {first:?}");
    assert_eq!(first.lasts, at(1.0), "soon there is more");
    let worker = rate(&mut state, now + 1.0, 1, u64::MAX);
    assert_eq!(worker, BOUND - BOUND / 20, "5 % are kept for clients");
    let second = budget(&mut state, now + 1.5, 70);
    assert_eq!(second.lasts, at(10.0));
    assert!(bytes_per_sec(second) > BOUND / 40 && bytes_per_sec(second) <= BOUND / 20, "{second:?}");
}

#[test]
fn the_reserve_is_given_back_when_the_last_lease_ends() {
    let (mut state, now) = busy();
    budget(&mut state, now, 70);
    for second in 4..=13 {
        state.decide(at(f64::from(second)), Event::Tick);
        assert!(rate(&mut state, f64::from(second), 1, u64::MAX) <= BOUND - BOUND / 20);
    }
    state.decide(at(13.1), Event::Tick);
    rate(&mut state, 13.5, 1, u64::MAX);
    assert_eq!(rate(&mut state, 14.0, 1, u64::MAX), BOUND);
}

#[test]
fn clients_share_the_reserve_and_a_late_one_finds_some() {
    let (mut state, now) = busy();
    for client in 0..4 {
        budget(&mut state, now, client);
    }
    let mut total = 0;
    for second in 1..=30 {
        let now = now + f64::from(second);
        state.decide(at(now), Event::Tick);
        let worker = rate(&mut state, now, 1, u64::MAX);
        let shares: Vec<u64> = (0..4).map(|client| bytes_per_sec(budget(&mut state, now, client))).collect();
        total = shares.iter().sum::<u64>();
        assert!(total <= BOUND / 20 + 4 * BOUND / 20 / 64, "{shares:?}");
        assert!(worker + total <= BOUND + BOUND / 20 / 16, "at {now} s: {worker} + {shares:?}");
    }
    assert!(total > BOUND / 20 * 9 / 10, "in the end the reserve is used: {total}");
    assert!(bytes_per_sec(budget(&mut state, now + 30.5, 99)) > 0);
}

#[test]
fn without_workers_clients_may_take_the_bound() {
    let mut state = state();
    let lease = budget(&mut state, 0.0, 70);
    assert_eq!(lease.lasts, at(10.0));
    assert!(bytes_per_sec(lease) > BOUND / 2, "{lease:?}");
    // A worker that comes is held back until the client's lease ends or is renewed.
    register(&mut state, 1.0, 1);
    let worker = rate(&mut state, 1.5, 1, u64::MAX);
    assert!(worker + bytes_per_sec(lease) <= BOUND, "{worker}");
    let renewed = budget(&mut state, 2.0, 70);
    assert!(bytes_per_sec(renewed) <= BOUND / 20, "{renewed:?}");
    assert!(rate(&mut state, 2.5, 1, u64::MAX) >= BOUND / 100 * 95);
}

#[test]
fn a_dead_worker_is_waited_for_and_then_its_part_is_free() {
    let (mut state, now) = busy();
    state.decide(at(now + 4.9), Event::Tick);
    assert!(bytes_per_sec(budget(&mut state, now + 4.9, 70)) <= BOUND / 1000, "the worker may still be reading");
    state.decide(at(now + 5.1), Event::Tick);
    assert!(bytes_per_sec(budget(&mut state, now + 5.9, 70)) > BOUND / 2);
}

#[test]
fn a_mount_that_is_gone_has_no_budget() {
    let mut state = state();
    let request = ControlRequest::Budget { client: 1, mount: MountId(9) };
    let error = error_of(ask(&mut state, 0.0, request).1);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("lake"), "{error}");
}

#[test]
fn there_is_a_limit_of_clients() {
    let mut state = state();
    for client in 0..1000 {
        budget(&mut state, 0.0, client);
    }
    let error = error_of(ask(&mut state, 0.1, ControlRequest::Budget { client: 5000, mount: LAKE }).1);
    assert_eq!(error.kind(), ErrorKind::Retry);
    budget(&mut state, 10.1, 5000);
}

#[test]
fn workers_that_join_while_a_client_holds_most_of_the_bound_share_what_is_left() {
    let mut state = state();
    let client = bytes_per_sec(budget(&mut state, 0.0, 70));
    register(&mut state, 0.0, 1);
    rate(&mut state, 0.3, 1, u64::MAX);
    register(&mut state, 0.3, 2);
    rate(&mut state, 0.4, 2, u64::MAX);
    let workers = rate(&mut state, 1.3, 1, u64::MAX) + rate(&mut state, 1.4, 2, u64::MAX);
    assert_eq!(workers + client, BOUND);
}

#[test]
fn a_demand_that_rises_takes_no_more_than_others_have_given_back() {
    let mut state = joined(2);
    let mut shares = [0, 0];
    for second in 1..100u32 {
        let now = f64::from(second);
        for (worker, demand) in [(1, BOUND / 3 * (u64::from(second) % 4)), (2, BOUND / 5 * (u64::from(second) % 7))] {
            shares[worker as usize - 1] = rate(&mut state, now + worker as f64 / 10.0, worker, demand);
            assert!(second == 1 || shares.iter().sum::<u64>() <= BOUND, "at {now} s: {shares:?}");
        }
    }
}
