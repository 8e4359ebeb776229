//! What the simulator says of the same arrivals, given where objects lie at first, what workers send a second, and what a read takes beside its
//! bytes.

use std::time::Duration;

use forebay_coordinator::PlacementSettings;
use forebay_placement::Policy;
use forebay_simulation::{ClusterSettings, Leading, Micros, Query, Recorded, Routing, Scenario, Way, Workload};

use super::arrivals::{Arrival, OBJECT_BYTES, OBJECTS, READ_BYTES, SENDS, WINDOWS, WINDOWS_SETTLED, WORKERS};

/// The middle of so many runs of the simulator is its word.
const SEEDS: u64 = 5;

/// What was live.
pub(super) struct Given<'a> {
    pub(super) placement: PlacementSettings,
    /// What shared storage takes for an object.
    pub(super) store: Duration,
    /// Each object with the worker that has it at first.
    pub(super) held: Vec<(u32, u32)>,
    pub(super) arrivals: &'a [Arrival],
    /// Objects by popularity.
    pub(super) ranks: &'a [usize],
    /// What a read takes beside its bytes.
    pub(super) beside_ms: f64,
}

/// What it should have come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predicted {
    pub(super) replicas: f64,
    pub(super) p99_ms: f64,
}

impl Given<'_> {
    /// A cluster with this policy.
    pub(super) fn predict(self, policy: Policy) -> Predicted {
        let beside_ms = self.beside_ms;
        // Clients go by queues, whatever is planned.
        let way = Way { leading: Leading::by(policy), routing: Routing::CLIENT };
        let outcome = self.scenario().middle(&way, SEEDS);
        Predicted { replicas: outcome.storage * OBJECTS as f64, p99_ms: outcome.p99_ms + beside_ms }
    }

    fn scenario(self) -> Scenario {
        let PlacementSettings { window, poll, .. } = self.placement;
        let cluster = ClusterSettings {
            workers: WORKERS,
            clients: 1,
            service: (READ_BYTES as f64 / SENDS as f64 * 1e6) as Micros,
            giving: Some(OBJECT_BYTES as f64 / READ_BYTES as f64),
            window: micros(window),
            poll: micros(poll),
            // Answers tell of a new table, which is asked for a tenth of a poll after the one before at the earliest.
            table_age: Some(micros(poll / 10)),
            // As coordinators have it.
            named: Some(micros(poll * 2 + Duration::from_secs(1))),
            load: micros(self.store),
            room: Some(2 * OBJECTS),
            windows: u64::from(WINDOWS),
            warm_up: u64::from(WINDOWS_SETTLED),
            held: self.held,
            ..ClusterSettings::default()
        };
        let query =
            |arrival: &Arrival| Query { at: micros(arrival.at), client: 0, segments: vec![self.ranks[arrival.rank] as u32] };
        let queries: Vec<Query> = self.arrivals.iter().map(query).collect();
        let paths = (0..OBJECTS).map(|object| format!("objects/{object:03}")).collect();
        let recorded = Recorded { queries, paths, bytes: vec![OBJECT_BYTES as u64; OBJECTS] };
        // As fast as they came.
        let a_second = recorded.queries.len() as f64 * 1e6 / recorded.length().max(1) as f64;
        let utilisation = a_second / cluster.capacity();
        Scenario { cluster, workload: Workload::Recorded(recorded), utilisation }
    }
}

fn micros(time: Duration) -> Micros {
    time.as_micros() as Micros
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::arrivals::WINDOW;
    use crate::live::{LiveSettings, placement};

    /// What is predicted of two reads of one object at a time, ten times a second, where each object stays where it is.
    fn predicted(beside_ms: f64) -> Predicted {
        let both = (1..240u32).flat_map(|tenth| [tenth; 2]);
        let arrivals: Vec<Arrival> =
            both.map(|tenth| Arrival { at: Duration::from_millis(100) * tenth, rank: 0, start: 0 }).collect();
        let ranks: Vec<usize> = (0..OBJECTS).rev().collect();
        let settings = LiveSettings { window: WINDOW, ..LiveSettings::default() };
        let held = (0..OBJECTS as u32).map(|object| (object, object % WORKERS as u32)).collect();
        let (placement, store) = (placement(settings), settings.latency);
        let given = Given { placement, store, held, arrivals: &arrivals, ranks: &ranks, beside_ms };
        given.predict(Policy::Uniform { replicas: 1.0 })
    }

    #[test]
    fn reads_come_as_they_came_and_take_their_turn_and_what_is_beside_their_bytes() {
        let alone_ms = READ_BYTES as f64 / SENDS as f64 * 1e3;
        let (without, with) = (predicted(0.0), predicted(-4.0));
        assert!((without.p99_ms - 2.0 * alone_ms).abs() < 0.1, "the second waits for the first: {} ms", without.p99_ms);
        assert!((without.p99_ms - with.p99_ms - 4.0).abs() < 1e-6);
        assert!((without.replicas - OBJECTS as f64).abs() < 1e-6, "{}", without.replicas);
    }
}
