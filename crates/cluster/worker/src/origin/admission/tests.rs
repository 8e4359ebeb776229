//! Who goes first, and how much of each class is under way.

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
    admission.raise(50, Priority::Demand);
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
    assert_eq!(admission.waiting_bytes(), (0, 2));
    admission.raise(2, Priority::Prefetch);
    assert_eq!((&mut first).now_or_never().unwrap().class(), Class::Prefetch);
    admission.raise(3, Priority::Demand);
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
    assert_eq!(admission.waiting_bytes(), (3, 0));
    drop(gone);
    assert_eq!(admission.waiting_bytes(), (2, 0));
    running.pop();
    drop(granted);
    assert!((&mut prefetch).now_or_never().is_some(), "no demand waits any more");
    running.push(try_enter(&admission, 60, Priority::Demand, 1).expect("the turn that nobody took is free again"));
    assert!(try_enter(&admission, 61, Priority::Demand, 1).is_none());
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
