//! How a client reaches its cluster, and its limits.

use std::time::Duration;

use forebay_shared_storage::StorageSettings;
use forebay_transport::{Address, Security};

/// How a client reaches its cluster, and its limits. Start from [`ClientSettings::new`].
#[derive(Clone)]
pub struct ClientSettings {
    /// Where the coordinator listens.
    pub coordinator: Address,
    /// What this side shows, and TLS. Without anything else it gets into a cluster of its own process, and on this machine where
    /// the user's own credential lies: see [`forebay_transport::Security`].
    pub security: Security,
    /// Read a worker of the same host in place, over its Unix socket. Off: TCP and copies, even beside a worker.
    pub in_place: bool,
    /// Small calls about temporary nodes go to a worker of the same host by memory shared with it. Off: over its Unix socket.
    pub ring: bool,
    /// How often the view of the cluster is asked for; sooner after a surprise.
    pub view_poll: Duration,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long a worker may take for a small read; what more is waited for makes it longer, a second a MiB or as the
    /// mount's bound says. Generous, because a cold read waits for its share of the bandwidth; a worker that was killed
    /// is seen at once by its closed connection.
    pub read_deadline: Duration,
    /// How long the coordinator may take to answer.
    pub control_deadline: Duration,
    /// Pins kept for the next read of the same bytes, over all workers.
    pub pins_max: usize,
    /// After how long without a read a kept pin is given back.
    pub pin_idle: Duration,
    /// What a prefetch may be ahead of its reader, in bytes.
    pub prefetch_bytes: u64,
    /// How shared storage is read when no worker answers.
    pub storage: StorageSettings,
}

impl ClientSettings {
    /// The defaults.
    pub fn new(coordinator: Address) -> Self {
        Self {
            coordinator,
            security: Security::default(),
            in_place: true,
            ring: true,
            view_poll: Duration::from_secs(20),
            connect_timeout: Duration::from_secs(3),
            read_deadline: Duration::from_secs(30),
            control_deadline: Duration::from_secs(60),
            pins_max: 16_384,
            pin_idle: Duration::from_secs(5),
            prefetch_bytes: 64 << 20,
            storage: StorageSettings::default(),
        }
    }
}
