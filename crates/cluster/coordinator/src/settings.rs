use std::time::Duration;

use forebay_transport::{Address, Security};

/// How a coordinator runs.
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
}

impl CoordinatorSettings {
    /// The default of `lease`.
    pub const LEASE: Duration = Duration::from_secs(5);
}
