//! Whether the one at the other end may.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use forebay_protocol::{DataRequest, DraftCall, InPlaceCount, PutCondition, WantedRecords, WantedRows, WorkerReport};
use forebay_rights::{Need, Place, needs};
use forebay_transport::{Deed, is_audited, unix_now};
use forebay_types::{ForebayPath, Key, MountId, MountName, Result};

use super::WorkerSession;

impl WorkerSession {
    /// `Denied` when the one at the other end has not what a request needs.
    pub(super) fn may(&self, need: impl FnOnce() -> Need, deed: impl FnOnce() -> Deed) -> Result<()> {
        if self.peer.caller.is_unlimited() && !is_audited() {
            return Ok(());
        }
        self.peer.may(&need(), |mount| self.mount_name(mount), deed)
    }

    /// The same for a request of a client. Who records accesses asks every second, and is told once a connection.
    pub(super) fn may_ask(&self, request: &DataRequest) -> Result<()> {
        // Each client asks by itself, and reads copies where it may not.
        if matches!(request, DataRequest::Attach) {
            return self.may_quietly(|| needs::data(request));
        }
        let records = matches!(request, DataRequest::Accesses(_));
        if records && self.records.load(Relaxed) {
            return self.may_quietly(|| needs::data(request));
        }
        self.may(|| needs::data(request), || self.deed(request))?;
        if records {
            self.records.store(true, Relaxed);
        }
        Ok(())
    }

    /// The same without a word to the audit log, for what is asked for again or hands over what was given before.
    pub(super) fn may_quietly(&self, need: impl FnOnce() -> Need) -> Result<()> {
        if self.peer.caller.is_unlimited() {
            return Ok(());
        }
        self.peer.caller.may(&need(), unix_now(), |mount| self.mount_name(mount))
    }

    /// Of reads in place that a client tells of those of mounts that it may read: what numbers segments have is told to everybody.
    pub(super) fn may_have_made(&self, mut counts: Vec<InPlaceCount>) -> Vec<InPlaceCount> {
        if !self.peer.caller.is_unlimited() {
            let may = |mount: MountId| self.may_quietly(|| Need::read(Place::Mount(mount))).is_ok();
            counts.retain(|count| self.rooms.signals.popularity.mount(count.segment).is_none_or(may));
        }
        counts
    }

    /// `Denied` where an object that is written changes what the manifests of a dataset order of its replicas, or gives up what was
    /// acknowledged of its records, and the one at the other end may write there and no more. Without what is written, where that comes later, it
    /// is taken for such a one.
    pub(super) async fn may_order(&self, mount: MountId, key: &Key, written: Option<(&PutCondition, &Bytes)>) -> Result<()> {
        self.may_forgo(mount, key, written.map(|(condition, _)| condition)).await?;
        // Processes of the cluster have looked at whom they serve.
        if self.may_quietly(Need::serve).is_ok() {
            return Ok(());
        }
        let changes = self.rooms.shards.orders_else(mount, key, written).await;
        self.may_administer(mount, key, changes, "shard_orders")
    }

    /// The same of what two workers' disks may have alone, which an object that is written leaves no place for.
    pub(super) async fn may_forgo(&self, mount: MountId, key: &Key, condition: Option<&PutCondition>) -> Result<()> {
        // That the owner gives something up is told as well.
        let is_told = self.peer.caller.is_unlimited() && is_audited();
        if !is_told && self.may_quietly(Need::serve).is_ok() {
            return Ok(());
        }
        let replaces = condition != Some(&PutCondition::Absent);
        let gives_up = self.rooms.shards.is_past_claim(mount, key, replaces).await;
        self.may_administer(mount, key, gives_up, "shard_forgo")
    }

    /// The same of an object that is deleted.
    pub(super) async fn may_order_without(&self, mount: MountId, key: &Key) -> Result<()> {
        if self.may_quietly(Need::serve).is_ok() {
            return Ok(());
        }
        let changes = self.rooms.shards.orders_else_without(mount, key).await;
        self.may_administer(mount, key, changes, "shard_orders")
    }

    /// Who may administer the mount is not held up where nobody can say whether an object does `what` takes that right.
    fn may_administer(&self, mount: MountId, key: &Key, does: Result<bool>, what: &'static str) -> Result<()> {
        match does {
            Ok(false) => return Ok(()),
            Err(error) if self.may_quietly(|| needs::manifest_orders(mount)).is_err() => return Err(error),
            Ok(true) | Err(_) => {}
        }
        let on = || self.mount_name(mount).map(|name| ForebayPath::new(name, key.clone()).to_string()).unwrap_or_default();
        self.may(|| needs::manifest_orders(mount), || Deed { port: "data", what, on: on() })
    }

    /// `Denied` where the one at the other end may not write an object of which another process has written a draft for it.
    pub(super) async fn may_commit(&self, mount: MountId, key: &Key) -> Result<()> {
        let on = || self.mount_name(mount).map(|name| ForebayPath::new(name, key.clone()).to_string()).unwrap_or_default();
        self.may(|| Need::write(Place::Mount(mount)), || Deed { port: "data", what: "draft_commit", on: on() })?;
        self.may_order(mount, key, None).await
    }

    /// Rights go by names, and a mount that was just made may have none here yet: with one that is not there at all, the request
    /// says so.
    pub(super) async fn hear_of_mount(&self, request: &DataRequest) {
        if self.peer.caller.is_unlimited() && !is_audited() {
            return;
        }
        if let Place::Mount(mount) = needs::data(request).place {
            let _ = self.rooms.origin.mount(mount).await;
        }
    }

    /// This worker's report, without what it says of mounts that the one at the other end may not read.
    pub(super) fn report(&self) -> WorkerReport {
        let mut report = self.rooms.report();
        let may_read = |place| self.may_quietly(|| Need::read(place)).is_ok();
        if may_read(Place::Everything) {
            return report;
        }
        report.cut(|mount| may_read(Place::Mount(mount)));
        report.warnings.retain(|warning| warning.is_for(|mount| may_read(Place::Named(mount.clone()))));
        report
    }

    fn mount_name(&self, mount: MountId) -> Option<MountName> {
        self.rooms.origin.mounts.find(mount).map(|door| door.mount.name.clone())
    }

    /// What a request would do, for the audit log.
    fn deed(&self, request: &DataRequest) -> Deed {
        let object = match request {
            DataRequest::Put { mount, key, .. }
            | DataRequest::PutBegin { mount, key, .. }
            | DataRequest::Drafts { call: DraftCall::Open { mount, below: key } | DraftCall::Begin { mount, key }, .. }
            | DataRequest::Delete { mount, key }
            | DataRequest::Changed { mount, key, .. }
            | DataRequest::Open { mount, key, .. }
            | DataRequest::Stat { mount, key, .. }
            | DataRequest::ReadLatest { mount, key, .. }
            | DataRequest::ReadObject { mount, key, .. } => Some((*mount, key)),
            DataRequest::Read { version, .. }
            | DataRequest::ReadCell { version, .. }
            | DataRequest::SelectRows(WantedRows { version, .. })
            | DataRequest::Prefetch { version, .. } => Some((version.mount, &version.key)),
            DataRequest::AskShard { dataset, .. }
            | DataRequest::GetRecords(WantedRecords { dataset, .. })
            | DataRequest::Shards { dataset }
            | DataRequest::ChangeShard { dataset, .. }
            | DataRequest::MergeShard { dataset, .. } => Some((dataset.mount, &dataset.folder)),
            // Of many objects the first one.
            DataRequest::TierOrder(order) => order.parts.first().map(|part| (order.mount, &part.key)),
            _ => None,
        };
        let on = object.map(|(mount, key)| match self.mount_name(mount) {
            Some(name) => ForebayPath::new(name, key.clone()).to_string(),
            None => format!("mount number {}: {key}", mount.0),
        });
        let what: &'static str = match request {
            DataRequest::TierOrder(order) => order.what.into(),
            request => request.into(),
        };
        Deed { port: "data", what, on: on.unwrap_or_default() }
    }
}
