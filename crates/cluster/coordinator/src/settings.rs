//! What an operator may set of a coordinator, with the defaults, and what a plan takes from it.

use std::time::Duration;

use forebay_metadata::Metadata;
use forebay_placement::{PlanSettings, Policy, Weigh};
use forebay_transport::{Address, Security};
use forebay_types::{Error, Result, format_duration};

/// Shortest lease: two heartbeats may be missed.
const LEASE_MIN: Duration = Duration::from_secs(2);

/// How a coordinator runs. Start from [`CoordinatorSettings::new`].
#[derive(Clone, Debug)]
pub struct CoordinatorSettings {
    /// Where it listens; port 0 takes any free one.
    pub listen: Address,
    /// `sqlite:PATH` or `postgres://..`.
    pub metadata_url: String,
    /// Token and TLS.
    pub security: Security,
    /// How long a worker counts as live without a heartbeat; they come once a second. 2 s at least.
    pub lease: Duration,
    /// How replicas follow popularity.
    pub placement: PlacementSettings,
}

impl CoordinatorSettings {
    /// The default of `lease`.
    pub const LEASE: Duration = Duration::from_secs(5);

    /// The defaults, without a token.
    pub fn new(listen: Address, metadata_url: String) -> Self {
        let (security, placement) = (Security::default(), PlacementSettings::default());
        Self { listen, metadata_url, security, lease: Self::LEASE, placement }
    }

    /// `Invalid` for a lease that no heartbeat could keep.
    pub fn check_lease(lease: Duration) -> Result<()> {
        if lease >= LEASE_MIN {
            return Ok(());
        }
        let lease = format_duration(lease);
        Err(Error::invalid(format!("a lease of {lease} is too short: 2s is the least, heartbeats come each second")))
    }

    /// `Invalid` for what is no URL of a metadata database; whether there is one is not asked.
    pub fn check_metadata(url: &str) -> Result<()> {
        Metadata::check(url)
    }
}

/// How replicas follow popularity.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementSettings {
    /// How a plan is made; none leaves every segment where rendezvous hashing puts it.
    pub policy: Option<Policy>,
    /// What plans weigh of what was read; none for what the policy goes by: the paper's own by accesses, all others by work.
    pub weigh: Option<Weigh>,
    /// Share of capacity beyond the average that a plan may use.
    pub slack: f64,
    /// Bytes that replicas may take, as a multiple of what one replica of everything that is read takes, 1 or more: what is left of
    /// it is used for replicas that shorten queues.
    pub budget: f64,
    /// Share of a worker's storage that replicas may take, and from which garbage is collected.
    pub storage_share: f64,
    /// A counting period, after which a plan is made; 100 ms at least.
    pub window: Duration,
    /// How often clients ask for view and routing table; 50 ms at least.
    pub poll: Duration,
}

impl Default for PlacementSettings {
    fn default() -> Self {
        Self {
            policy: Some(Policy::default()),
            weigh: None,
            slack: PlanSettings::default().slack,
            budget: PlanSettings::default().budget,
            storage_share: 0.8,
            window: Duration::from_secs(60),
            poll: Duration::from_secs(20),
        }
    }
}

impl PlacementSettings {
    const WINDOW_MIN: Duration = Duration::from_millis(100);
    const POLL_MIN: Duration = Duration::from_millis(50);

    /// `Invalid` for settings that no coordinator starts with.
    pub fn validate(&self) -> Result<()> {
        if self.window < Self::WINDOW_MIN || self.poll < Self::POLL_MIN {
            let (window, poll) = (self.window, self.poll);
            return Err(Error::invalid(format!(
                "a window of {window:?} or a poll of {poll:?} is too short: 100ms and 50ms are the least"
            )));
        }
        if !(0.05..=1.0).contains(&self.storage_share) {
            let share = self.storage_share;
            return Err(Error::invalid(format!("a storage share of {share} is none: use a share from 0.05 to 1, as in 0.8")));
        }
        self.plan(0, 0).validate()
    }

    pub(crate) fn weigh(&self) -> Weigh {
        self.weigh.unwrap_or_else(|| self.policy.unwrap_or_default().weighs())
    }

    /// The settings of a plan over so many workers whose random choices follow `seed`. A few workers need only a few tries:
    /// the plan of the next window is better than a perfect one that comes after it.
    pub(crate) fn plan(&self, workers: usize, seed: u64) -> PlanSettings {
        let all = PlanSettings::of(self.policy.unwrap_or_default());
        let iterations = u32::try_from(workers * 50).unwrap_or(u32::MAX).clamp(500, all.iterations.max(500));
        PlanSettings { slack: self.slack, budget: self.budget, seed, iterations, ..all }
    }
}
