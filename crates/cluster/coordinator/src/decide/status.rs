//! The answer to `forebay status`, put together from the catalogue and from what workers report.

use std::time::Duration;

use forebay_protocol::{ClusterStatus, MountStatus, StorageCounters};
use forebay_types::{ForebayPath, MountId};

use super::State;

impl State {
    pub(crate) fn status(&self, now: Duration) -> ClusterStatus {
        let mounts = self.catalogue.mounts.values();
        let pins = self.catalogue.pins.iter().filter_map(|pin| {
            let mount = self.catalogue.mounts.get(&pin.mount)?;
            Some(ForebayPath::new(mount.name.clone(), pin.prefix.clone()))
        });
        ClusterStatus {
            forebay_version: env!("CARGO_PKG_VERSION").to_string(),
            epoch: self.epoch,
            uptime: now,
            metadata: self.metadata.to_string(),
            mounts: mounts.map(|mount| MountStatus { mount: mount.clone(), counters: self.counters(mount.id) }).collect(),
            pins: pins.collect(),
            workers: self.members.all().map(|member| (member.info.clone(), member.state, member.report.clone())).collect(),
        }
    }

    /// Requests and bytes of a mount, over all workers.
    fn counters(&self, mount: MountId) -> StorageCounters {
        let reports = self.members.all().flat_map(|member| &member.report.storage);
        reports.filter(|(id, _)| *id == mount).fold(StorageCounters::default(), |sum, (_, counters)| StorageCounters {
            gets: sum.gets.saturating_add(counters.gets),
            heads: sum.heads.saturating_add(counters.heads),
            lists: sum.lists.saturating_add(counters.lists),
            puts: sum.puts.saturating_add(counters.puts),
            deletes: sum.deletes.saturating_add(counters.deletes),
            retries: sum.retries.saturating_add(counters.retries),
            bytes_in: sum.bytes_in.saturating_add(counters.bytes_in),
            bytes_out: sum.bytes_out.saturating_add(counters.bytes_out),
            socket_bytes_in: sum.socket_bytes_in.saturating_add(counters.socket_bytes_in),
        })
    }
}
