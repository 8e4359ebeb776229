//! What is run: workers, replicas, clients and their load.

use forebay_navigation::{Curve, Settings};
use forebay_types::Error;

use super::arrivals::Load;

/// Seconds between two samples, where nothing else is said.
pub(super) const SAMPLE_SECS: f64 = 10.0;

/// How clients choose among replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardRouting {
    /// The shorter wait of two that are drawn: the default.
    #[default]
    TwoChoices,
    /// The shortest queue of all, as in the paper.
    JoinShortest,
}

impl ShardRouting {
    /// The names that [`FromStr`](std::str::FromStr) knows.
    pub const NAMES: &'static str = "two-choices or join-shortest";
}

forebay_types::named! {
    ShardRouting, Error: TwoChoices = "two-choices", JoinShortest = "join-shortest";
    |text| Error::invalid(format!("{text:?} is no way to choose a replica: use {}", ShardRouting::NAMES))
}

/// Where a replica is, and its level at the beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) shard: usize,
    pub(super) worker: usize,
    pub(super) start: u32,
}

/// A worker that is lost, and what its shards' copies may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) secs: f64,
    pub(super) worker: usize,
    /// Of all copies together.
    pub(super) bytes_per_sec: f64,
    pub(super) in_flight_bytes_max: u64,
}

/// A run: what comes of it is a function of this.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) curve: Curve,
    pub(super) room_bytes: Vec<u64>,
    /// By worker, then by shard.
    pub(super) places: Vec<Place>,
    pub(super) clients: usize,
    /// Requests that wait for a shard at most: more are refused.
    pub(super) waiting_max: u64,
    pub(super) routing: ShardRouting,
    pub(super) settings: Settings,
    /// How long it takes until ordered layers are there.
    pub(super) build_secs: f64,
    /// Whether levels move at all.
    pub(super) navigates: bool,
    pub(super) load: Load,
    pub(super) loss: Option<Loss>,
    pub(super) end_secs: f64,
    /// Between two samples.
    pub(super) sample_secs: f64,
    /// Queues are emptied then, and answers counted from then on.
    pub(super) count_from_secs: f64,
    pub(super) seed: u64,
}

impl Setup {
    /// Seconds of building a layer: a pass over a shard of 100 MB takes 11 to 19 CPU seconds.
    pub(super) const BUILD_SECS: f64 = 15.0;
    /// Requests take so much longer while layers are built beside them.
    pub(super) const BUILDING_SLOWS: f64 = 1.1;

    /// One worker with one replica of each shard, all at `start`.
    pub(super) fn one_worker(curve: Curve, shards: usize, start: u32, load: Load, seed: u64) -> Self {
        Self {
            room_bytes: vec![shards as u64 * curve.bytes(curve.highest())],
            curve,
            places: (0..shards).map(|shard| Place { shard, worker: 0, start }).collect(),
            clients: 4,
            waiting_max: u64::MAX,
            routing: ShardRouting::default(),
            settings: settings(),
            build_secs: Self::BUILD_SECS,
            navigates: true,
            load,
            loss: None,
            end_secs: 3_600.0,
            sample_secs: SAMPLE_SECS,
            count_from_secs: 0.0,
            seed,
        }
    }
}

/// The default but for the target: shards of the model answer 4 to 160 requests a second, not thousands.
fn settings() -> Settings {
    Settings { target_us: 1e6, ..Settings::default() }
}
