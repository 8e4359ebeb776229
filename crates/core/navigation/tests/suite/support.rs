//! A worker of some replicas that does what its plans say.

use forebay_navigation::{Curve, Decision, Level, Plan, Replica, Settings, ShardId, Snapshot, plan};
use proptest::prelude::*;

/// Of which replica, its queue, what arrives, and whether what is ordered is built at once.
pub type Load = (usize, u32, u32, bool);

/// One after the other.
pub fn loads() -> impl Strategy<Value = Vec<Load>> {
    prop::collection::vec((0usize..8, 0u32..400, 0u32..300, any::<bool>()), 1..60)
}

/// What replicas at these levels take.
pub fn bytes(levels: impl Iterator<Item = u32>) -> u64 {
    levels.map(|level| 50 + 10 * u64::from(level)).sum()
}

/// Five levels of 50 to 90 bytes, each twice as fast as the one below: 100 ms down to 6.25 ms.
pub fn curve() -> Curve {
    let level = |at: u32| Level { bytes: 50 + 10 * u64::from(at), service_us: 100_000.0 / f64::from(1 << at) };
    Curve::new((0..5).map(level).collect()).expect("levels rise")
}

/// A plan each second, half of each average from the newest, requests that should wait a second at most.
pub fn settings() -> Settings {
    Settings {
        period_secs: 1.0,
        beta: 0.5,
        target_us: 1e6,
        drain_secs: 10.0,
        calm_secs: 20.0,
        building_max: 4,
        ..Settings::default()
    }
}

/// A replica of the worker.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    pub level: u32,
    pub ordered: u32,
    pub start: u32,
    pub queue: u32,
    pub arrived: u32,
    pub lowest: u32,
    pub frozen: bool,
}

impl Own {
    /// At `level`, where it started, with nothing to do.
    pub fn idle(level: u32) -> Self {
        Self { level, ordered: level, start: level, queue: 0, arrived: 0, lowest: 0, frozen: false }
    }

    /// With so many requests that wait, and so many that come in a period.
    pub fn with(self, queue: u32, arrived: u32) -> Self {
        Self { queue, arrived, ..self }
    }

    /// Pinned at a level, to which it returns too if that is above its start.
    pub fn pinned(self, lowest: u32) -> Self {
        Self { lowest, start: self.start.max(lowest), ..self }
    }

    /// With layers that stay as they are.
    pub fn frozen(self) -> Self {
        Self { frozen: true, ..self }
    }
}

/// A worker with its last plan.
pub struct Worker {
    pub curve: Curve,
    pub settings: Settings,
    pub room_bytes: u64,
    pub replicas: Vec<Own>,
    pub plan: Plan,
}

impl Worker {
    /// Of replicas of shards 0, 1, .. that has made its first plan.
    pub fn new(room_bytes: u64, replicas: &[Own]) -> Self {
        let (curve, settings, replicas) = (curve(), settings(), replicas.to_vec());
        let mut worker = Self { curve, settings, room_bytes, replicas, plan: Plan::default() };
        worker.decide();
        worker
    }

    /// One plan, which nobody follows yet.
    pub fn decide(&mut self) -> &Plan {
        let replica = |(shard, own): (u64, &Own)| Replica {
            shard: ShardId(shard),
            curve: &self.curve,
            lowest: own.lowest,
            start: own.start,
            highest: self.curve.highest(),
            level: own.level,
            ordered: own.ordered,
            queue: own.queue,
            arrived: own.arrived,
            frozen: own.frozen,
        };
        let replicas: Vec<Replica<'_>> = (0..).zip(&self.replicas).map(replica).collect();
        let snapshot = Snapshot { replicas: &replicas, room_bytes: self.room_bytes };
        self.plan = plan(&self.settings, &snapshot, &self.plan).expect("the worker can be");
        &self.plan
    }

    /// One plan; layers are dropped at once, and those that are to be built are ordered.
    pub fn order(&mut self) {
        self.decide();
        for (own, decision) in self.replicas.iter_mut().zip(&self.plan.decisions) {
            own.ordered = decision.to;
            own.level = own.level.min(decision.to);
        }
    }

    /// One plan under a load of one replica more.
    pub fn meet(&mut self, (at, queue, arrived, is_built): Load) {
        let at = at % self.replicas.len();
        self.replicas[at] = self.replicas[at].with(queue, arrived);
        if is_built { self.follow() } else { self.order() }
    }

    /// One plan, and all that it says is there at once.
    pub fn follow(&mut self) {
        self.order();
        self.replicas.iter_mut().for_each(|own| own.level = own.ordered);
    }

    pub fn levels(&self) -> Vec<u32> {
        self.replicas.iter().map(|own| own.level).collect()
    }

    pub fn of(&self, shard: u64) -> &Decision {
        self.plan.of(ShardId(shard)).expect("it has the shard")
    }
}
