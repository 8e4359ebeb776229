//! Reads that come to a worker by a table of before: how many there are, what they cost, and that none is lost.

use std::collections::{HashMap, HashSet};

use forebay_simulation::{Fact, Micros, Observer, Outcome, Scenario, Way, Workload, named, way};

const SECOND: Micros = 1_000_000;

/// Keeps account of the accesses of each query, and of what other workers gave.
#[derive(Default)]
struct Account {
    /// Accesses of each query that have no answer yet.
    open: HashMap<u64, usize>,
    held: HashSet<(u32, u32)>,
    /// When a query's access was given a segment for a worker.
    given: HashMap<(u64, u32, u32), Micros>,
    /// How long after that the answer came, at least.
    soonest: Option<Micros>,
    /// What workers were given, and has not gone since.
    kept: HashSet<(u32, u32)>,
    gifts: usize,
    /// Of these, of what was given before.
    again: usize,
    passed_through: usize,
}

impl Account {
    fn answered(&mut self, query: u64) {
        let open = self.open.get_mut(&query).expect("it was asked");
        *open = open.checked_sub(1).expect("no access is answered twice");
    }
}

impl Observer for Account {
    fn see(&mut self, now: Micros, fact: Fact) {
        match fact {
            Fact::Asked { query, accesses } => assert_eq!(self.open.insert(query, accesses), None),
            Fact::Given { query, segment, worker, from } => {
                assert!(self.held.contains(&(segment, from)), "worker {from} gave segment {segment} without it");
                assert_ne!(worker, from);
                self.given.insert((query, segment, worker), now);
                self.gifts += 1;
                self.again += usize::from(!self.kept.insert((segment, worker)));
            }
            Fact::Accepted { query, segment, worker, done } => {
                assert!(self.held.contains(&(segment, worker)), "worker {worker} answered for segment {segment} without it");
                self.answered(query);
                if let Some(at) = self.given.remove(&(query, segment, worker)) {
                    self.soonest = Some(self.soonest.map_or(done - at, |soonest| soonest.min(done - at)));
                }
            }
            Fact::PassedThrough { query, .. } => {
                self.answered(query);
                self.passed_through += 1;
            }
            Fact::Answered { query, .. } => assert_eq!(self.open.remove(&query), Some(0), "query {query} was answered in part"),
            Fact::Loaded { segment, worker } => {
                self.held.insert((segment, worker));
            }
            Fact::Deleted { segment, worker } | Fact::Collected { segment, worker } => {
                self.held.remove(&(segment, worker));
                self.kept.remove(&(segment, worker));
            }
            Fact::Loading { .. } | Fact::Polled { .. } | Fact::Named { .. } => {}
        }
    }
}

/// The paper's plan, whose replicas go at once when they aren't planned any more.
fn hasty() -> Way {
    let mut way = way("getafix-paper").expect("it is known");
    way.leading.make_before_break = false;
    way
}

/// A short run with tables of that age.
fn aged(scenario: &str, age: Micros) -> Scenario {
    let mut place = named(scenario).expect("it is known");
    (place.cluster.windows, place.cluster.warm_up) = (6, 1);
    place.cluster.table_age = Some(age);
    place
}

fn watched(place: &Scenario, way: &Way) -> (Outcome, Account) {
    let mut account = Account::default();
    let outcome = place.watch(way, 1, &mut account);
    assert!(account.open.is_empty(), "{} queries were not answered", account.open.len());
    (outcome, account)
}

#[test]
fn tables_of_no_age_misroute_nothing_and_older_ones_the_more() {
    let misrouted = |age: Micros| watched(&aged("paper", age), &hasty()).0.misrouted;
    let (none, little, much) = (misrouted(0), misrouted(SECOND / 50), misrouted(2 * SECOND));
    assert_eq!(none, 0);
    assert!(little < much, "{little} with tables of 20 ms, {much} with tables of 2 s");
}

#[test]
fn replicas_that_stay_until_no_table_names_them_misroute_nothing() {
    let patient = way("getafix-paper").expect("it is known");
    let (outcome, account) = watched(&aged("paper", 2 * SECOND), &patient);
    assert_eq!((outcome.misrouted, account.gifts), (0, 0));
    assert!(outcome.deletes > 0.0, "replicas must go for this to say anything");
}

#[test]
fn a_misrouted_read_is_sent_twice_and_asked_for_once_more() {
    let place = aged("paper", 5 * SECOND);
    let (outcome, account) = watched(&place, &hasty());
    assert!(outcome.misrouted > 0 && account.gifts > 0, "{outcome:?}");
    let least = place.cluster.round_trip + 2 * place.cluster.service;
    let soonest = account.soonest.expect("some were given");
    assert!(soonest >= least, "{soonest} us from the question to the answer, {least} at least");
    assert_eq!(account.again, 0, "a worker with room keeps what it was given");
}

#[test]
fn nothing_is_lost_by_old_tables_where_room_is_scarce_and_segments_come() {
    for (scenario, seconds) in [("room", 5), ("room", 90), ("fresh", 30)] {
        let mut place = aged(scenario, seconds * SECOND);
        place.utilisation = 0.3;
        if let (Some(room), Workload::Synthetic(load)) = (&mut place.cluster.room, &mut place.workload) {
            // No more than there is at the start, and more comes soon.
            (*room, load.fresh_every) = (20, Some(22 * SECOND));
        }
        let (outcome, account) = watched(&place, &hasty());
        assert!(outcome.queries > 0, "{scenario}");
        assert!(scenario != "room" || account.passed_through > 0, "a worker without room keeps nothing");
    }
}
