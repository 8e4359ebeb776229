//! What is wrong with processes where they meet the network: they take nothing from their connections, have no descriptors left for others,
//! or end between two of their steps.

use std::collections::BTreeMap;

use super::disks;
use super::packet::HostId;

/// What is wrong with whom. Faults may overlap.
#[derive(Default)]
pub(super) struct Processes {
    pub(super) deaf: BTreeMap<HostId, u32>,
    pub(super) without_descriptors: BTreeMap<HostId, u32>,
    /// Who ends, and how many packets more it sends before.
    pub(super) ends: Option<(HostId, u32)>,
    /// Whose turn it is is being ended without a word.
    pub(super) crashing: bool,
}

impl Processes {
    pub(super) fn is_deaf(&self, host: HostId) -> bool {
        self.deaf.get(&host).is_some_and(|times| *times > 0)
    }

    pub(super) fn is_without_descriptors(&self, host: HostId) -> bool {
        self.without_descriptors.get(&host).is_some_and(|times| *times > 0)
    }

    /// It ends, and has sent all that it is to send.
    pub(super) fn has_ended(&self, host: HostId) -> bool {
        self.ends == Some((host, 0))
    }

    /// A host's process has sent a packet: from now on it may have ended.
    pub(super) fn has_sent(&mut self, host: HostId) {
        let Some((ends, left)) = &mut self.ends else { return };
        if *ends == host && *left > 0 {
            *left -= 1;
            if *left == 0 {
                disks::set_ended(Some(host));
            }
        }
    }
}

/// One fault more, or less, of a host.
pub(super) fn change(times: &mut BTreeMap<HostId, u32>, host: HostId, begins: bool) {
    let times = times.entry(host).or_default();
    *times = if begins { *times + 1 } else { *times - 1 };
}
