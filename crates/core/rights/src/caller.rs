//! Whoever holds a connection: what was proved at its start, and whether that was withdrawn since.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};

use forebay_types::{Error, MountId, MountName, Result};

use crate::{Need, Who, decide};

/// Who is at the other end of a connection, as long as that holds.
#[derive(Clone, Debug)]
pub struct Caller {
    who: Who,
    /// Set when the credential was taken away: the connection stays, and may do nothing more.
    ended: Arc<AtomicBool>,
}

impl Caller {
    /// Somebody whose right lasts as long as the process.
    pub fn new(who: Who) -> Self {
        Self { who, ended: Arc::default() }
    }

    /// Somebody whose right ends when `ended` is set.
    pub fn until(who: Who, ended: Arc<AtomicBool>) -> Self {
        Self { who, ended }
    }

    /// Who it is.
    pub fn who(&self) -> &Who {
        &self.who
    }

    /// `Denied`, with what is missing, where this one may not. `now` is in seconds since 1970.
    pub fn may(&self, need: &Need, now: u64, name_of: impl Fn(MountId) -> Option<MountName>) -> Result<()> {
        if self.ended.load(Acquire) {
            return Err(Error::denied(format!("{} was taken away: ask an administrator for another one", self.who)));
        }
        decide(&self.who, need, now, name_of)
    }

    /// Whether this one may do everything that readers and writers may, everywhere, with no look at any request.
    pub fn is_unlimited(&self) -> bool {
        matches!(self.who, Who::Owner)
    }
}
