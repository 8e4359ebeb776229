//! What all connections of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    pub(crate) memory: Memory,
    /// Connections that ended since they said nothing: anybody can make them.
    pub(crate) silent: Mutex<Seldom>,
}

/// What requests and answers of all connections take.
#[derive(Clone)]
pub(crate) struct Memory {
    /// What requests take their memory from.
    pub(crate) budget: Budget,
    /// Bytes of answers that wait to be sent.
    pub(crate) unsent: Arc<AtomicUsize>,
}

impl Memory {
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget, unsent: Arc::default() }
    }

    /// Answers that wait have more than half of what there is for requests.
    pub(crate) fn is_full_of_answers(&self) -> bool {
        self.unsent.load(Ordering::Relaxed) as u64 > self.budget.bytes() / 2
    }
}
