//! The oracle of runs: it keeps its own account of who has what, and knows what must never happen.

use std::collections::{HashMap, HashSet, VecDeque};

use forebay_simulation::{Fact, Micros, Observer};

/// Knows from what happened, and not from the cluster's own books, who has what, and panics at what must never be.
#[derive(Default)]
pub struct Oracle {
    /// How long after it was replaced a client may still go by a table.
    poll: Micros,
    loading: HashSet<(u32, u32)>,
    held: HashSet<(u32, u32)>,
    /// Of those that are loading: for an access that came to the wrong worker, and by no plan.
    given: HashSet<(u32, u32)>,
    queries: Queries,
    /// The latest ones, the oldest first.
    tables: VecDeque<Table>,
    tables_of_clients: HashMap<u32, u64>,
    /// Of each segment, the last run in which it lost a replica.
    runs: HashMap<u32, Run>,
    pub collected: usize,
    pub deletions: usize,
    pub loads: usize,
    pub answered: usize,
}

/// The queries that are not answered: accesses that were asked for and accepted, and when the last of these ends.
#[derive(Default)]
struct Queries {
    asked: HashMap<u64, usize>,
    accepted: HashMap<u64, usize>,
    ends: HashMap<u64, Micros>,
}

impl Queries {
    fn access(&mut self, query: u64, end: Micros) {
        let accepted = self.accepted.entry(query).or_default();
        *accepted += 1;
        assert!(*accepted <= self.asked[&query], "query {query} had an access answered twice");
        let last = self.ends.entry(query).or_default();
        *last = end.max(*last);
    }

    fn answered(&mut self, query: u64, done: Micros) {
        let asked = self.asked.remove(&query).expect("it was asked");
        assert_eq!(self.accepted.remove(&query), Some(asked), "query {query} was answered in part");
        assert!(Some(done) >= self.ends.remove(&query), "query {query} was answered before its last access");
    }
}

/// How a segment's replicas go when a plan is carried out.
struct Run {
    at: Micros,
    /// Replicas before the first one went.
    held: usize,
    /// Of these, what the plan deleted.
    deleted: usize,
}

/// A routing table that clients may go by.
struct Table {
    version: u64,
    made: Micros,
    /// (segment, worker)
    names: HashSet<(u32, u32)>,
}

impl Oracle {
    pub fn new(poll: Micros) -> Self {
        Self { poll, ..Self::default() }
    }

    /// Nobody may be left without an answer when a run is over.
    pub fn ended(&self) {
        let asked = &self.queries.asked;
        assert!(asked.is_empty(), "{} queries were not answered", asked.len());
    }

    fn drop_replica(&mut self, segment: u32, worker: u32) {
        assert!(
            self.held.remove(&(segment, worker)) || self.loading.remove(&(segment, worker)),
            "worker {worker} was to delete segment {segment}, which it doesn't have"
        );
    }

    /// The run of now, in which a replica of the segment is about to go.
    fn run(&mut self, now: Micros, segment: u32) -> &mut Run {
        let held = self.held.iter().filter(|(held, _)| *held == segment).count();
        let run = self.runs.entry(segment).or_insert(Run { at: now, held, deleted: 0 });
        if run.at != now {
            *run = Run { at: now, held, deleted: 0 };
        }
        run
    }

    fn deleted(&mut self, now: Micros, segment: u32, worker: u32) {
        self.deletions += 1;
        let run = self.run(now, segment);
        run.deleted += 1;
        let (deleted, held) = (run.deleted, run.held);
        assert!(deleted <= (held / 2).max(1), "a run deleted {deleted} of {held} replicas of segment {segment}");
        self.drop_replica(segment, worker);
        let left = self.held.iter().filter(|(held, _)| *held == segment).count();
        assert!(left > 0, "segment {segment} has no replica left after worker {worker} deleted its own");
        assert!(
            !self.loading.difference(&self.given).any(|(loading, _)| *loading == segment),
            "worker {worker} deleted segment {segment} while its successor was loading"
        );
        for (client, version) in &self.tables_of_clients {
            let table = self.tables.iter().find(|table| table.version == *version);
            assert!(
                !table.is_some_and(|table| table.names.contains(&(segment, worker))),
                "worker {worker} deleted segment {segment}, which client {client} asks it for by table {version}"
            );
        }
    }
}

impl Observer for Oracle {
    fn see(&mut self, now: Micros, fact: Fact) {
        match fact {
            Fact::Asked { query, accesses } => {
                assert_eq!(self.queries.asked.insert(query, accesses), None);
            }
            Fact::Accepted { query, segment, worker, done } => {
                assert!(self.held.contains(&(segment, worker)), "worker {worker} answered for segment {segment} without it");
                assert!(done > now, "an access takes time");
                self.queries.access(query, done);
            }
            Fact::PassedThrough { query, segment, worker } => {
                // What was given for it is not kept.
                self.given.remove(&(segment, worker));
                self.queries.access(query, now);
            }
            Fact::Given { segment, worker, from, .. } => {
                assert!(self.held.contains(&(segment, from)), "worker {from} gave segment {segment} without it");
                assert!(!self.held.contains(&(segment, worker)), "worker {worker} was given segment {segment}, which it has");
                self.given.insert((segment, worker));
            }
            Fact::Answered { query, done } => {
                self.queries.answered(query, done);
                self.answered += 1;
            }
            Fact::Loading { segment, worker } => {
                assert!(!self.held.contains(&(segment, worker)), "worker {worker} loads segment {segment}, which it has");
                assert!(self.loading.insert((segment, worker)), "worker {worker} loads segment {segment} twice");
                self.loads += 1;
            }
            Fact::Loaded { segment, worker } => {
                // At the start workers have segments that they didn't load.
                if !self.loading.remove(&(segment, worker)) {
                    assert_eq!(now, 0, "worker {worker} has segment {segment} without loading it");
                }
                self.given.remove(&(segment, worker));
                self.held.insert((segment, worker));
            }
            Fact::Deleted { segment, worker } => self.deleted(now, segment, worker),
            Fact::Collected { segment, worker } => {
                self.collected += 1;
                self.run(now, segment);
                self.drop_replica(segment, worker);
            }
            Fact::Named { version, segment, worker } => {
                if self.tables.back().is_none_or(|last| last.version != version) {
                    self.tables.push_back(Table { version, made: now, names: HashSet::new() });
                    let oldest = now.saturating_sub(2 * self.poll);
                    while self.tables.len() > 2 && self.tables[1].made < oldest {
                        self.tables.pop_front();
                    }
                }
                assert!(
                    self.held.contains(&(segment, worker)),
                    "a table names worker {worker} for segment {segment}, not there yet"
                );
                self.tables.back_mut().expect("one was put there").names.insert((segment, worker));
            }
            Fact::Polled { client, version } => {
                self.tables_of_clients.insert(client, version);
            }
        }
    }
}
