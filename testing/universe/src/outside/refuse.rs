//! Links that say at once that there are no new connections, as a firewall may.

use super::network::Network;
use super::packet::HostId;

impl Network {
    /// A blocked link turns new connections away at once, or no longer.
    pub(crate) fn set_refusing(&self, from: HostId, to: HostId, refuses: bool) {
        let mut state = self.state().lock();
        match refuses {
            true => state.refusing.insert((from, to)),
            false => state.refusing.remove(&(from, to)),
        };
    }
}
