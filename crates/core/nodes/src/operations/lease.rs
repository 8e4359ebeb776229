//! Nodes that go away unless somebody keeps them.

use std::time::Duration;

use crate::namespace::Namespace;
use crate::terms::{DirId, NodeResult};

impl Namespace {
    /// The node goes away, with all that is in it, unless this is called again before `until`. None: it stays.
    pub fn set_lease(&mut self, dir: DirId, name: &str, until: Option<Duration>) -> NodeResult<()> {
        let mut flags = self.node(dir, name)?.flags();
        flags.set_leased(until.is_some());
        self.whole(|names| {
            names.step_flags(dir, name, flags);
            names.step_lease(dir, name, until);
        });
        Ok(())
    }

    /// The nodes whose leases are over.
    pub fn expired(&self, now: Duration) -> Vec<(DirId, String)> {
        let over = self.leases.iter().filter(|(_, until)| **until <= now);
        over.map(|((dir, name), _)| (*dir, name.to_string())).collect()
    }
}
