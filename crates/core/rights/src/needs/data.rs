//! The table of rights for a worker's port: reads, writes, notices, and what workers ask each other.

use forebay_protocol::{DataNotice, DataRequest, DraftCall, PeerRequest, WantedRecords, WantedRows};
use forebay_types::MountId;

use crate::{Need, Place};

/// What a request to a worker needs.
pub fn data(request: &DataRequest) -> Need {
    match request {
        // The memory that it hands over holds what is cached of every mount.
        DataRequest::Attach => Need::read(Place::Everything),
        DataRequest::Open { mount, .. }
        | DataRequest::List { mount, .. }
        | DataRequest::ReadLatest { mount, .. }
        | DataRequest::Stat { mount, .. }
        | DataRequest::ReadObject { mount, .. }
        // Costs a request to shared storage, and changes nothing.
        | DataRequest::Refresh { mount, .. } => Need::read(Place::Mount(*mount)),
        DataRequest::Read { version, .. }
        | DataRequest::ReadCell { version, .. }
        | DataRequest::SelectRows(WantedRows { version, .. }) => Need::read(Place::Mount(version.mount)),
        DataRequest::AskShard { dataset, .. }
        | DataRequest::GetRecords(WantedRecords { dataset, .. })
        | DataRequest::Shards { dataset } => Need::read(Place::Mount(dataset.mount)),
        DataRequest::Prefetch { version, keep: false, .. } => Need::read(Place::Mount(version.mount)),
        DataRequest::Prefetch { version, keep: true, .. } => Need::administer(Place::Mount(version.mount)),
        DataRequest::Put { mount, .. }
        | DataRequest::PutBegin { mount, .. }
        | DataRequest::Delete { mount, .. }
        // Of a gateway that has written past the worker.
        | DataRequest::Changed { mount, .. } => Need::write(Place::Mount(*mount)),
        DataRequest::ChangeShard { dataset, .. } | DataRequest::MergeShard { dataset, .. } => {
            Need::write(Place::Mount(dataset.mount))
        }
        DataRequest::Drafts { call: DraftCall::Open { mount, .. }, .. } => Need::write(Place::Mount(*mount)),
        // For who opened them, whose right to write was looked at then.
        DataRequest::Drafts { call: DraftCall::Begin { .. }, .. } => Need::serve(),
        DataRequest::Drafts { call: DraftCall::End, .. } => Need::write(Place::Begun),
        DataRequest::PutPart { .. } | DataRequest::PutCommit { .. } | DataRequest::PutAbort { .. } => {
            Need::write(Place::Begun)
        }
        DataRequest::TierOrder(order) => Need::administer(Place::Mount(order.mount)),
        // Segments of any mount, by numbers that don't say of which.
        DataRequest::Free { .. } | DataRequest::Keep { .. } => Need::administer(Place::Everything),
        // Names objects of all mounts, and tells what others do.
        DataRequest::Accesses(_) => Need::administer(Place::Everything),
        DataRequest::Held { .. }
        | DataRequest::Present { .. }
        | DataRequest::Departed { .. }
        | DataRequest::Report
        | DataRequest::Queue
        | DataRequest::Ring => Need::read(Place::Cluster),
    }
}

/// What writing an object of a dataset needs as well when it changes what is ordered of it, or gives up acknowledged changes, as over HTTP.
pub fn manifest_orders(mount: MountId) -> Need {
    Need::administer(Place::Mount(mount))
}

/// What a message without an answer needs.
pub fn notice(notice: &DataNotice) -> Need {
    match notice {
        DataNotice::Unpin { .. } | DataNotice::Ended { .. } => Need::read(Place::Begun),
    }
}

/// What a worker's request to another one needs.
pub fn peer(request: &PeerRequest) -> Need {
    match request {
        PeerRequest::Copy { .. }
        | PeerRequest::Form { .. }
        | PeerRequest::Coming { .. }
        | PeerRequest::Missed { .. }
        | PeerRequest::ShardHeld { .. }
        | PeerRequest::ShardPart { .. }
        | PeerRequest::ClaimBegin { .. }
        | PeerRequest::ClaimKeep { .. }
        | PeerRequest::ClaimKept { .. }
        | PeerRequest::ClaimEnd { .. }
        | PeerRequest::Came { .. } => Need::serve(),
    }
}
