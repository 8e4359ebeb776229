//! Who goes first, and how much of each class is under way.

use std::cell::Cell;

use super::*;
use futures::FutureExt;

fn try_enter(admission: &Arc<Admission>, id: u64, priority: Priority, bytes: u64) -> Option<Permit> {
    admission.enter(id, priority, bytes).now_or_never()
}

#[test]
fn demand_goes_first_and_is_bounded() {
    let admission = Arc::new(Admission::default());
    let mut running: Vec<_> = (0..DEMAND_MAX as u64).map(|id| try_enter(&admission, id, Priority::Demand, 1).unwrap()).collect();
    let _early = try_enter(&admission, 100, Priority::Prefetch, 1).expect("no demand waits yet");
    let mut demand = Box::pin(admission.enter(101, Priority::Demand, 1));
    assert!((&mut demand).now_or_never().is_none(), "one demand too many");
    let mut late = Box::pin(admission.enter(102, Priority::Prefetch, 1));
    assert!((&mut late).now_or_never().is_none(), "prefetch passed waiting demand");
    running.pop();
    assert!((&mut demand).now_or_never().is_some());
    assert!((&mut late).now_or_never().is_some());
}

#[test]
fn prefetch_is_bounded_by_requests_and_bytes() {
    let admission = Arc::new(Admission::default());
    let small: Vec<_> = (0..20).map_while(|id| try_enter(&admission, id, Priority::Prefetch, 1)).collect();
    assert_eq!(small.len(), PREFETCH_MAX);
    drop(small);
    let large: Vec<_> = (0..20).map_while(|id| try_enter(&admission, id, Priority::Prefetch, 4 << 20)).collect();
    assert_eq!(large.len(), 3);
    drop(large);
    admission.set_bound(Some(50_000_000));
    let large: Vec<_> = (0..20).map_while(|id| try_enter(&admission, id, Priority::Prefetch, 4 << 20)).collect();
    assert_eq!(large.len(), 2, "400 Mbit/s are full with two");
    drop(large);
    assert!(try_enter(&admission, 30, Priority::Prefetch, 64 << 20).is_some(), "a large one alone goes through");
}

#[test]
fn of_a_bounded_mount_what_was_asked_for_first_ends_first() {
    let admission = Arc::new(Admission::default());
    admission.set_bound(Some(8 << 20));
    let mut first = try_enter(&admission, 1, Priority::Demand, 4 << 20).unwrap();
    assert!(try_enter(&admission, 30, Priority::Demand, 64 << 10).is_some(), "a short one goes beside");
    let mut second = Box::pin(admission.enter(31, Priority::Demand, 4 << 20));
    first.arrived(2 << 20);
    assert!((&mut second).now_or_never().is_none(), "a quarter of a second is still to come");
    let urgent = try_enter(&admission, 40, Priority::Urgent, 4 << 20).expect("beside what runs");
    let mut late = Box::pin(admission.enter(41, Priority::Urgent, 4 << 20));
    assert!((&mut late).now_or_never().is_none(), "bounded too");
    first.arrived(1 << 20);
    assert!((&mut second).now_or_never().is_none(), "what is urgent goes first");
    drop(urgent);
    let _late = (&mut late).now_or_never().unwrap();
    let _second = (&mut second).now_or_never().expect("the first has not ended, and little of it is to come");
    admission.set_bound(None);
    assert!(try_enter(&admission, 70, Priority::Demand, 4 << 20).is_some());
}

#[tokio::test]
async fn who_gets_nothing_keeps_nobody_waiting() {
    let admission = Arc::new(Admission::default());
    admission.set_bound(Some(8 << 20));
    let mut stalled = try_enter(&admission, 1, Priority::Demand, 4 << 20).unwrap();
    assert!(try_enter(&admission, 2, Priority::Demand, 4 << 20).is_none());
    let second = forebay_runtime::time::timeout(10 * STALLED, admission.enter(3, Priority::Demand, 4 << 20));
    tokio::select! {
        entered = second => assert!(entered.is_ok()),
        () = stalled.during(std::future::pending()) => unreachable!("it never ends"),
    }
}

#[test]
fn raised_prefetch_overtakes() {
    let admission = Arc::new(Admission::default());
    let running: Vec<_> = (0..20).map_while(|id| try_enter(&admission, id, Priority::Prefetch, 1)).collect();
    let mut waiting = Box::pin(admission.enter(50, Priority::Prefetch, 1));
    assert!((&mut waiting).now_or_never().is_none());
    admission.raise(50, Priority::Demand, UNPLANNED);
    assert_eq!((&mut waiting).now_or_never().unwrap().class(), Class::Demand);
    drop(running);
}

#[test]
fn background_takes_what_all_others_leave() {
    let admission = Arc::new(Admission::default());
    admission.set_bound(Some(100 << 20));
    let background: Vec<_> = (0..20).map_while(|id| try_enter(&admission, id, Priority::Background, 1)).collect();
    assert_eq!(background.len(), PREFETCH_MAX, "alone it has all that prefetch has");
    drop(background);
    let demand = try_enter(&admission, 30, Priority::Demand, 4 << 20).unwrap();
    let beside: Vec<_> = (40..50).map_while(|id| try_enter(&admission, id, Priority::Background, 1)).collect();
    assert_eq!(beside.len(), BESIDE_DEMAND_MAX);
    drop(beside);
    let prefetch = try_enter(&admission, 60, Priority::Prefetch, 64 << 20).expect("it waits for no background");
    let one = try_enter(&admission, 61, Priority::Background, 1).expect("no prefetch waits");
    let mut second = Box::pin(admission.enter(62, Priority::Background, 1));
    assert!((&mut second).now_or_never().is_none(), "one beside prefetch");
    let mut more = Box::pin(admission.enter(63, Priority::Prefetch, 1));
    assert!((&mut more).now_or_never().is_none(), "a tenth of a second is on its way");
    drop(one);
    assert!((&mut second).now_or_never().is_none(), "nothing is left over while prefetch waits");
    drop(prefetch);
    let _more = (&mut more).now_or_never().unwrap();
    assert_eq!((&mut second).now_or_never().unwrap().class(), Class::Background);
    drop(demand);
}

#[test]
fn background_that_others_wait_for_is_no_background() {
    let admission = Arc::new(Admission::default());
    let prefetch = try_enter(&admission, 1, Priority::Prefetch, 1).unwrap();
    let beside = try_enter(&admission, 4, Priority::Background, 1).unwrap();
    let (mut first, mut second) =
        (Box::pin(admission.enter(2, Priority::Background, 1)), Box::pin(admission.enter(3, Priority::Background, 1)));
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    assert_eq!((admission.waiting().demand, admission.waiting().background), (0, 2));
    admission.raise(2, Priority::Prefetch, UNPLANNED);
    assert_eq!((&mut first).now_or_never().unwrap().class(), Class::Prefetch);
    admission.raise(3, Priority::Demand, UNPLANNED);
    assert_eq!((&mut second).now_or_never().unwrap().class(), Class::Demand);
    drop((prefetch, beside));
}

#[test]
fn who_gives_up_leaves_no_turn_behind() {
    let admission = Arc::new(Admission::default());
    let mut running: Vec<_> = (0..DEMAND_MAX as u64).map(|id| try_enter(&admission, id, Priority::Demand, 1).unwrap()).collect();
    let mut granted = Box::pin(admission.enter(50, Priority::Demand, 1));
    let mut gone = Box::pin(admission.enter(51, Priority::Demand, 1));
    assert!((&mut granted).now_or_never().is_none() && (&mut gone).now_or_never().is_none());
    let mut prefetch = Box::pin(admission.enter(52, Priority::Prefetch, 1));
    assert!((&mut prefetch).now_or_never().is_none());
    assert_eq!((admission.waiting().demand, admission.waiting().ahead.values().sum::<u64>()), (2, 1));
    drop(gone);
    assert_eq!((admission.waiting().demand, admission.waiting().ahead.values().sum::<u64>()), (1, 1));
    running.pop();
    drop(granted);
    assert!((&mut prefetch).now_or_never().is_some(), "no demand waits any more");
    running.push(try_enter(&admission, 60, Priority::Demand, 1).expect("the turn that nobody took is free again"));
    assert!(try_enter(&admission, 61, Priority::Demand, 1).is_none());
}

fn plan(number: u64) -> PlanTurn {
    Standing { priority: 0, began_ms: number }.turn(OperationId(number), 0)
}

/// Lets whoever waits in one after the other, each when the one before has ended; gives their numbers.
fn in_turn(running: Permit, waiting: Vec<(u64, impl Future<Output = Permit>)>) -> Vec<u64> {
    let (mut waiting, mut order) = (waiting.into_iter().map(|(id, enter)| (id, Box::pin(enter))).collect::<Vec<_>>(), Vec::new());
    let mut running = Some(running);
    while !waiting.is_empty() {
        drop(running.take());
        let next = waiting.iter_mut().enumerate().find_map(|(at, (id, enter))| Some((at, *id, enter.now_or_never()?)));
        let (at, id, permit) = next.expect("one of them is let in");
        waiting.remove(at);
        order.push(id);
        running = Some(permit);
        let others = waiting.iter_mut().filter_map(|(_, enter)| enter.now_or_never()).count();
        assert_eq!(others, 0, "one at a time");
    }
    order
}

#[test]
fn of_prefetch_the_first_plan_comes_first_whoever_asked_first() {
    for priority in [Priority::Prefetch, Priority::Background] {
        let admission = Arc::new(Admission::default());
        admission.set_bound(Some(1));
        let full = 2 * PREFETCH_BYTES_MIN;
        let running = try_enter(&admission, 1, priority, full).unwrap();
        let late = Standing { priority: 1, began_ms: 50 }.turn(OperationId(5), 0);
        let asked = [(10, plan(3)), (11, plan(2)), (12, plan(3)), (13, plan(1)), (14, plan(2)), (15, late)];
        let waiting = asked.map(|(id, turn)| {
            let mut enter = Box::pin(admission.enter_for(id, priority, turn, full));
            assert!((&mut enter).now_or_never().is_none());
            (id, enter)
        });
        assert_eq!(in_turn(running, Vec::from(waiting)), [15, 13, 11, 14, 10, 12], "and each plan in its own order");
    }
}

#[test]
fn what_an_earlier_plan_will_read_too_moves_to_its_turn() {
    let admission = Arc::new(Admission::default());
    admission.set_bound(Some(1));
    let full = 2 * PREFETCH_BYTES_MIN;
    let running = admission.enter_for(1, Priority::Prefetch, plan(9), full).now_or_never().unwrap();
    assert_eq!(admission.waiting().coming, Some(plan(9)));
    let waiting = [(10, plan(2)), (11, plan(3))].map(|(id, turn)| {
        let mut enter = Box::pin(admission.enter_for(id, Priority::Prefetch, turn, full));
        assert!((&mut enter).now_or_never().is_none());
        (id, enter)
    });
    assert_eq!(admission.waiting().ahead, BTreeMap::from([(plan(2), full), (plan(3), full)]));
    admission.raise(11, Priority::Prefetch, plan(1));
    assert_eq!(admission.waiting().ahead, BTreeMap::from([(plan(1), full), (plan(2), full)]));
    admission.raise(1, Priority::Prefetch, plan(1));
    assert_eq!(admission.waiting().coming, Some(plan(9)), "it runs");
    admission.raise(1, Priority::Demand, UNPLANNED);
    assert_eq!(admission.waiting().coming, None, "somebody waits for it");
    assert_eq!(in_turn(running, Vec::from(waiting)), [11, 10]);
    assert_eq!(admission.waiting(), Waiting { coming: Some(plan(2)), ..Waiting::default() }, "the plan that had something last");
}

#[test]
fn a_full_queue_sends_background_away_first_and_demand_last() {
    const MIB: u64 = 1 << 20;
    let admission = Arc::new(Admission::new(16 * MIB));
    admission.set_bound(Some(8 * MIB));
    let classes = [Priority::Background, Priority::Prefetch, Priority::Demand, Priority::Urgent];
    let is_full = || classes.map(|priority| admission.full_for(priority).is_some());
    let running = try_enter(&admission, 0, Priority::Demand, 4 * MIB).unwrap();
    assert_eq!(is_full(), [false; 4], "what runs does not wait");
    let mut waiting = Vec::new();
    let mut told = Vec::new();
    for id in 1..=8 {
        let mut enter = Box::pin(admission.enter(id, Priority::Demand, 2 * MIB));
        assert!((&mut enter).now_or_never().is_none());
        waiting.push(enter);
        told.push(is_full());
    }
    assert_eq!(told[..2], [[false; 4], [true, false, false, false]], "from a quarter on");
    assert_eq!(told[2..4], [[true, false, false, false], [true, true, false, false]], "from half on");
    assert_eq!(told[6..], [[true, true, false, false], [true; 4]]);
    assert_eq!(admission.full_for(Priority::Demand), Some(Duration::from_secs(1)), "half of it has come then");
    admission.set_bound(None);
    assert_eq!(admission.full_for(Priority::Demand), None, "without a bound they are let in");
    admission.set_bound(Some(8 * MIB));
    waiting.clear();
    assert_eq!(is_full(), [false; 4], "who has given up does not count");
    drop(running);
}

#[test]
fn a_queue_of_nothing_lets_in_what_need_not_wait() {
    let admission = Arc::new(Admission::new(0));
    assert_eq!(admission.full_for(Priority::Background), None);
    assert!(try_enter(&admission, 1, Priority::Demand, 64 << 20).is_some());
}

#[test]
fn demand_of_a_low_priority_lets_some_pass_and_no_more() {
    let admission = Arc::new(Admission::default());
    admission.set_bound(Some(1));
    let full = 2 * DEMAND_BYTES_MIN;
    let running = try_enter(&admission, 1, Priority::Demand, full).unwrap();
    let turn = |priority| Standing { priority, began_ms: 0 }.turn(OperationId(0), 0);
    let passes = u64::from(lane::PASSES);
    let asked = [(10, -1), (11, -1), (12, 0), (13, -2), (14, 5)].into_iter().chain((20..20 + passes).map(|id| (id, 0)));
    let waiting = asked.map(|(id, priority)| {
        let mut enter = Box::pin(admission.enter_for(id, Priority::Demand, turn(priority), full));
        assert!((&mut enter).now_or_never().is_none());
        (id, enter)
    });
    let waiting: Vec<_> = waiting.collect();
    let order = in_turn(running, waiting);
    // 12 and 14 are among the eight that 10 and 11 let pass.
    let mut expected: Vec<u64> = [12, 14].into_iter().chain(20..20 + passes - 2).collect();
    expected.extend([10, 11]);
    let (first, last) = order.split_at(expected.len());
    assert_eq!(first, expected);
    assert_eq!(last, [20 + passes - 2, 13, 20 + passes - 1], "the lowest has let eight pass by then, too");
}

#[test]
fn demand_that_others_wait_for_too_lets_nobody_pass_any_more() {
    let admission = Arc::new(Admission::default());
    admission.set_bound(Some(1));
    let full = 2 * DEMAND_BYTES_MIN;
    let running = try_enter(&admission, 1, Priority::Demand, full).unwrap();
    let turn = |priority| Standing { priority, began_ms: 0 }.turn(OperationId(0), 0);
    let line_up = |id: u64, priority: i32| {
        let mut enter = Box::pin(admission.enter_for(id, Priority::Demand, turn(priority), full));
        assert!((&mut enter).now_or_never().is_none());
        (id, enter)
    };
    let mut waiting = vec![line_up(10, -1), line_up(11, -1)];
    admission.raise(10, Priority::Demand, turn(0));
    waiting.push(line_up(12, 0));
    assert_eq!(in_turn(running, waiting), [10, 12, 11]);
}

#[test]
fn what_somebody_waits_for_before_it_lines_up_is_demand() {
    let admission = Arc::new(Admission::default());
    let priority = Cell::new(Priority::Prefetch);
    let mut enter = Box::pin(admission.enter_as(1, 1, || (priority.get(), UNPLANNED)));
    priority.set(Priority::Demand);
    assert_eq!((&mut enter).now_or_never().unwrap().class(), Class::Demand);
}

#[test]
#[should_panic(expected = "bytes to come are of requests that run")]
fn bytes_of_a_request_that_has_ended_are_caught() {
    let admission = Arc::new(Admission::default());
    admission.0.lock().prefetch.bytes = 1;
    admission.set_bound(None);
}

#[test]
#[should_panic(expected = "what comes was counted when it was let in")]
fn bytes_that_come_and_were_not_counted_are_caught() {
    let admission = Arc::new(Admission::default());
    let mut permit = try_enter(&admission, 1, Priority::Prefetch, 100).unwrap();
    admission.0.lock().prefetch.bytes = 0;
    permit.arrived(100);
}
