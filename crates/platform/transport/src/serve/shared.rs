//! What all connections of a server share.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::ring::Rings;
use crate::tls::Acceptor;
use crate::{Budget, Security, Seldom, ServerLimits};

/// The service, and what its connections take their share of.
pub(crate) struct Shared<S> {
    pub(crate) service: Arc<S>,
    pub(crate) security: Security,
    pub(crate) acceptor: Option<Acceptor>,
    pub(crate) limits: ServerLimits,
    pub(crate) rings: Arc<Rings>,
    /// Places for connections that have passed the handshake.
    pub(crate) admitted: Arc<Semaphore>,
    /// What requests take their memory from.
    pub(crate) budget: Budget,
    /// Bytes of answers that wait to be sent, over all connections.
    pub(crate) unsent: Arc<AtomicUsize>,
    /// Connections that ended since they said nothing: anybody can make them.
    pub(crate) silent: Mutex<Seldom>,
}
