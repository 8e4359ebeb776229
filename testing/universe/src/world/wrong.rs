//! What is wrong now, where faults overlap.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_demo::S3Server;
use forebay_metadata::Memory;
use forebay_oracle::history::Call;
use forebay_oracle::{Rule, Violation};

use crate::outside::network::Network;
use crate::outside::packet::HostId;

/// What is wrong now, where more than one fault may have made it so.
#[derive(Default)]
pub(super) struct Wrong {
    blocked: BTreeMap<(HostId, HostId), u32>,
    slow_us: BTreeMap<(HostId, HostId), u64>,
    store_late_ms: u64,
    metadata_away: u32,
}

impl Wrong {
    pub(super) fn block(&mut self, network: &Network, from: HostId, to: HostId) {
        *self.blocked.entry((from, to)).or_default() += 1;
        network.block(from, to);
    }

    pub(super) fn unblock(&mut self, network: &Network, from: HostId, to: HostId) {
        let times = self.blocked.entry((from, to)).or_default();
        *times -= 1;
        if *times == 0 {
            network.unblock(from, to);
        }
    }

    pub(super) fn slow(&mut self, network: &Network, from: HostId, to: HostId, by_us: i64) {
        let all_us = self.slow_us.entry((from, to)).or_default();
        *all_us = all_us.saturating_add_signed(by_us);
        network.slow(from, to, *all_us);
    }

    pub(super) fn metadata_away(&mut self, metadata: &Memory, begins: bool) {
        self.metadata_away = if begins { self.metadata_away + 1 } else { self.metadata_away - 1 };
        metadata.set_away(self.metadata_away > 0);
    }

    pub(super) fn store_later(&mut self, server: &S3Server, by_ms: i64) {
        self.store_late_ms = self.store_late_ms.saturating_add_signed(by_ms);
        server.set_latency(Duration::from_millis(self.store_late_ms));
    }
}

/// What clients have in temporary nodes is a small part of what there is room for.
pub(super) fn without_room(calls: &[Call]) -> Option<Violation> {
    let refused = |call: &&Call| call.error.as_ref().is_some_and(|failure| failure.kind == "nospace");
    let first = calls.iter().find(refused)?;
    let message = first.error.as_ref().map_or("", |failure| failure.message.as_str());
    Some(Violation::new(Rule::HasRoom, format!("{} at {} us: {message}", first.name(), first.begin_us)))
}
