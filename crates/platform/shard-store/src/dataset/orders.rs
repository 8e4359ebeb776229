//! What an operator orders of a dataset: of its replicas, whatever they are asked, and when its changes are acknowledged.

use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};

/// Largest size that a replica may be kept at, as a part of the input.
pub(super) const SIZE_MAX: f64 = 16.0;

/// Orders of a dataset, which its manifests keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetOrders {
    /// Its replicas stay where they are, at a size at least; none where they come and go with their load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<DatasetPin>,
    /// Layers of its replicas stay as they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frozen: bool,
    /// When a change of its records is acknowledged.
    #[serde(default, skip_serializing_if = "Acknowledged::is_usual")]
    pub ack: Acknowledged,
}

/// When a change is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledged {
    /// Shared storage has it.
    #[default]
    Storage,
    /// The disks of two workers have it; shared storage has it within seconds.
    TwoWorkers,
}

impl Acknowledged {
    /// Whether it is as nobody has to order it.
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

forebay_types::named! {
    Acknowledged, Error: Storage = "storage", TwoWorkers = "two-workers";
    |text| Error::invalid(format!("{text:?}: a change is acknowledged when it is in `storage`, or on the disks of `two-workers`"))
}

/// How a dataset is pinned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetPin {
    /// The least size of each replica, as a part of the input; none for the one that it starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
}

impl DatasetOrders {
    /// Whether nothing is ordered.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The least size that a replica which starts with `size` is kept at; none where it is not pinned.
    pub fn least(&self, size: f64) -> Option<f64> {
        self.pin.map(|pin| pin.size.unwrap_or(size))
    }

    /// `Invalid` where they can't be followed.
    pub fn check(&self) -> Result<()> {
        match self.pin.and_then(|pin| pin.size) {
            Some(size) if !(size > 0.0 && size <= SIZE_MAX) => Err(Error::invalid(format!(
                "a replica is pinned at a part of the input above 0 and up to {SIZE_MAX}, not at {size}"
            ))),
            _ => Ok(()),
        }
    }
}
