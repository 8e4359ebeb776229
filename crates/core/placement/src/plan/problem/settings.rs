//! How a plan is made, and what it may cost.

use std::fmt;
use std::str::FromStr;

use forebay_types::{Error, Result};

use crate::Weigh;

/// Which concurrency Scarlett goes by. Its paper leaves it open, and its storage differs by a factor of three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// The most accesses in flight at once.
    #[default]
    Peak,
    /// The average of accesses in flight.
    Mean,
}

/// How a plan is made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Policy {
    /// The default: Getafix with slack, sticky to who holds the segments, spread over workers, and repacked.
    #[default]
    Getafix,
    /// The paper's own: Algorithm 1 with Best Fit, without slack, and workers by matching.
    GetafixPaper,
    /// Algorithm 1 with First Fit.
    FirstFit,
    /// Algorithm 1 with Largest Fit.
    LargestFit,
    /// Algorithm 1 with Best Fit; the paper's MODIFIEDBESTFIT.
    BestFit,
    /// Fewest replicas: Best Fit, repacked.
    Repack,
    /// The same number of replicas of every segment, on random workers; a fraction is the share of segments that get
    /// one more.
    Uniform {
        /// Replicas a segment, 1 or more.
        replicas: f64,
    },
    /// Scarlett (EuroSys 2011): replicas by concurrent accesses, round robin under a budget.
    Scarlett {
        /// Which concurrency counts.
        concurrency: Concurrency,
        /// Replicas beyond the concurrent accesses.
        delta: u32,
        /// Replicas in all; none: every segment gets what it wants.
        budget: Option<u64>,
    },
}

impl Policy {
    /// What it weighs of what was read, unless somebody wants it otherwise.
    pub fn weighs(self) -> Weigh {
        if self == Self::GetafixPaper { Weigh::Accesses } else { Weigh::Work }
    }

    /// The names that [`FromStr`] knows.
    pub const NAMES: &'static str = "getafix, getafix-paper, first-fit, largest-fit, best-fit, repack, uniform or scarlett";
}

impl FromStr for Policy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "getafix" => Self::Getafix,
            "getafix-paper" => Self::GetafixPaper,
            "first-fit" => Self::FirstFit,
            "largest-fit" => Self::LargestFit,
            "best-fit" => Self::BestFit,
            "repack" => Self::Repack,
            "uniform" => Self::Uniform { replicas: 2.0 },
            "scarlett" => Self::Scarlett { concurrency: Concurrency::Peak, delta: 1, budget: None },
            _ => return Err(Error::invalid(format!("{text:?} is no policy: use {}", Self::NAMES))),
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Getafix => "getafix",
            Self::GetafixPaper => "getafix-paper",
            Self::FirstFit => "first-fit",
            Self::LargestFit => "largest-fit",
            Self::BestFit => "best-fit",
            Self::Repack => "repack",
            Self::Uniform { .. } => "uniform",
            Self::Scarlett { .. } => "scarlett",
        })
    }
}

/// What a plan goes by beside the snapshot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanSettings {
    /// How it is made.
    pub policy: Policy,
    /// Share of capacity beyond the average that the default policy may use; 0.02 to 0.05 removes nearly all splits,
    /// from 0.1 the tail latency suffers.
    pub slack: f64,
    /// Bytes that replicas may take, as a multiple of what one replica of every segment takes. What the default policy leaves
    /// of it goes to further replicas where they shorten queues most; at 1 there are none but those that are called for.
    pub budget: f64,
    /// What the random choices follow: the same snapshot and settings give the same plan.
    pub seed: u64,
    /// How often the planner may try to save a replica, and up to 20,000 times where many segments are split; it stops
    /// when there is nothing to save. 0 for not at all.
    pub iterations: u32,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self { policy: Policy::default(), slack: 0.05, budget: 1.0, seed: 0, iterations: 4_000 }
    }
}

impl PlanSettings {
    /// The default settings with another policy.
    pub fn of(policy: Policy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Refuses values that make no sense.
    /// `Invalid`: a slack that isn't from 0 to 1, a budget below 1, or fewer than one replica a segment.
    pub fn validate(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.slack) {
            return Err(Error::invalid(format!("a slack of {} is none: use a share from 0 to 1, as in 0.05", self.slack)));
        }
        if !(1.0..=1e6).contains(&self.budget) {
            let budget = self.budget;
            return Err(Error::invalid(format!("a budget of {budget} is none: use 1 or more times the bytes of all segments")));
        }
        match self.policy {
            Policy::Uniform { replicas } if !(1.0..=1e6).contains(&replicas) => {
                Err(Error::invalid(format!("{replicas} replicas of every segment can't be: use 1 or more")))
            }
            _ => Ok(()),
        }
    }
}
