//! Since which version of the protocol there is each kind of message. A new kind is not sent to a peer of a version before: who adds
//! one says so here, and gives a sample of it, which the golden bytes of that version are written from.

use bytes::Bytes;
use forebay_types::Result;

use crate::codec::decode;
use crate::control::{AdminRequest, ControlCall, ControlReply, ControlRequest, MemberRequest};
use crate::data::{DataReply, DataRequest};
use crate::nodes::{NodeCall, NodeOp, NodeReply, PeerCall, PeerOp};
use crate::notice::DataNotice;
use crate::peer::PeerRequest;
use crate::version::{
    CAME_SINCE, CLAIMS_SINCE, Kind, ONCE_SINCE, PROTOCOL_VERSION, ROWS_SINCE, YOUNG_SINCE, check_known, encode_for, speaking,
};

/// A request to a worker, which was written in this build's version, for a peer of `version`: for what is said to several. `Retry`
/// when that one does not know it.
pub fn request_for(version: u16, message: Bytes) -> Result<Bytes> {
    if version >= PROTOCOL_VERSION {
        return Ok(message);
    }
    if let Some(request) = PeerRequest::decode(&message) {
        let request = request?;
        check_known(&request, (&request).into(), version)?;
        return Ok(speaking(version, || request.encode()));
    }
    // What is said of temporary nodes has the same bytes in all versions, but for numbers: workers pass it on as it came.
    let peer = PeerCall::decode(&message).map(|call| call.and_then(|call| check_known(&call.op, (&call.op).into(), version)));
    let client =
        || NodeCall::decode(&message).map(|call| call.and_then(|call| check_known(&call.op, (&call.op).into(), version)));
    if let Some(known) = peer.or_else(client) {
        known?;
        let numbered = NodeCall::decode(&message).and_then(|call| call.ok()).filter(|call| call.number.is_some());
        let numberless = numbered.map(|call| call.encode_for(version));
        return Ok(numberless.unwrap_or(message));
    }
    let request: DataRequest = decode(&message)?;
    check_known(&request, (&request).into(), version)?;
    Ok(encode_for(version, &request))
}

/// A worker's reply that was written in this build's version, for a peer of `version`.
pub fn reply_for(version: u16, message: Bytes) -> Bytes {
    match version < PROTOCOL_VERSION {
        // What this build has written it can read.
        true => decode::<DataReply>(&message).map_or(message, |reply| encode_for(version, &reply.for_version(version))),
        false => message,
    }
}

/// The same of a reply about temporary nodes.
pub fn node_reply_for(version: u16, message: Bytes) -> Bytes {
    if version >= PROTOCOL_VERSION {
        return message;
    }
    let told = NodeReply::decode(&message).ok().map(|reply| reply.for_version(version).encode());
    told.unwrap_or(message)
}

impl Kind for DataRequest {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::Attach | Self::Open { .. } | Self::List { .. } | Self::Read { .. } | Self::ReadLatest { .. }
            | Self::Prefetch { .. } | Self::Put { .. } | Self::PutBegin { .. } | Self::PutPart { .. } | Self::PutCommit { .. }
            | Self::PutAbort { .. } | Self::Delete { .. } | Self::Refresh { .. } | Self::Changed { .. } | Self::Free { .. }
            | Self::Keep { .. } | Self::Held { .. } | Self::Report | Self::Stat { .. } | Self::ReadObject { .. } | Self::Queue
            | Self::Present { .. } | Self::ReadCell { .. } | Self::Ring | Self::AskShard { .. } | Self::Shards { .. }
            | Self::MergeShard { .. } | Self::ChangeShard { .. } | Self::Departed { .. } | Self::GetRecords(_) => 8,
            Self::SelectRows(_) => ROWS_SINCE,
            Self::Accesses(_) | Self::Drafts { .. } | Self::TierOrder(_) => 9,
        }
    }
}

impl Kind for DataReply {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::Failed { .. } | Self::Attached { .. } | Self::Info(_) | Self::Listed(_) | Self::Read { .. }
            | Self::ReadLatest { .. } | Self::Fetched { .. } | Self::Upload { .. } | Self::Done | Self::Freed { .. }
            | Self::Held(_) | Self::Report(_) | Self::Stat(..) | Self::ReadObject { .. } | Self::Copied { .. } | Self::Queue(_)
            | Self::Present(_) | Self::NoCell { .. } | Self::Form(_) | Self::Heard { .. } | Self::Shard { .. } | Self::Shards(_)
            | Self::ShardChanged { .. } | Self::Shared(_) | Self::Departed(_) | Self::ShardHeld(_) => 8,
            Self::Selected(_) => ROWS_SINCE,
            Self::Accesses(_) | Self::Busy { .. } | Self::InVain { .. } | Self::Elsewhere { .. } => 9,
            Self::Kept(_) => CLAIMS_SINCE,
        }
    }
}

impl Kind for DataNotice {
    fn since(&self) -> u16 {
        match self {
            Self::Unpin { .. } | Self::Ended { .. } => 8,
        }
    }
}

impl Kind for PeerRequest {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::Copy { .. } | Self::Form { .. } | Self::Coming { .. } | Self::Missed { .. } | Self::ShardHeld { .. }
            | Self::ShardPart { .. } => 8,
            Self::ClaimBegin { .. } | Self::ClaimKeep { .. } | Self::ClaimKept { .. } | Self::ClaimEnd { .. } => CLAIMS_SINCE,
            Self::Came { .. } => CAME_SINCE,
        }
    }
}

impl Kind for ControlCall {
    fn since(&self) -> u16 {
        match self {
            Self::Ask(request) => request.since(),
            Self::Administer(request) => request.since(),
            Self::Serve(request) => request.since(),
        }
    }
}

impl Kind for ControlRequest {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::View { .. } | Self::TableAdd { .. } | Self::TableRemove { .. } | Self::Tables | Self::Budget { .. } | Self::Status
            | Self::Routes { .. } | Self::Placement { .. } | Self::Scheduler | Self::WhoAmI | Self::Unheard { .. } => 8,
        }
    }
}

impl Kind for AdminRequest {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            // A coordinator of the version before would leave the rule out, and say that all is done.
            Self::MountAdd { options, .. } | Self::MountSet { options, .. } if options.young.is_some() => YOUNG_SINCE,
            Self::MountAdd { .. } | Self::MountSet { .. } | Self::MountRemove { .. } | Self::PinAdd { .. } | Self::PinRemove { .. }
            | Self::Drain { .. } | Self::TokenAdd { .. } | Self::TokenRemove { .. } | Self::Tokens => 8,
        }
    }
}

impl Kind for MemberRequest {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::Register(_) | Self::Heartbeat(_) | Self::Leave(_) | Self::News(_) | Self::PassRoot { .. } | Self::Scheduler { .. }
            | Self::Credentials => 8,
        }
    }
}

impl Kind for ControlReply {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::Failed { .. } | Self::View(_) | Self::Unchanged | Self::Beat { .. } | Self::Mount(_) | Self::Tables(_)
            | Self::Budget(_) | Self::Status(_) | Self::Done | Self::Routes(_) | Self::Placement(_) | Self::Scheduler(_)
            | Self::Tokens(_) | Self::Caller(_) | Self::Credentials { .. } | Self::Unheard { .. } => 8,
        }
    }
}

impl Kind for NodeOp<'_> {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::Get | Self::Put { .. } | Self::PutBlocks { .. } | Self::Create { .. } | Self::Stat | Self::List { .. }
            | Self::Append { .. } | Self::AppendBlocks { .. } | Self::Write { .. } | Self::Read { .. } | Self::Extents { .. }
            | Self::Delete { .. } | Self::Parent | Self::Rename { .. } | Self::OpenWriter { .. } | Self::CloseWriter { .. }
            | Self::Lease { .. } | Self::BlockWrite { .. } | Self::BlockRead { .. } | Self::GetMany { .. } | Self::PutMany { .. }
            | Self::Prepare { .. } | Self::Written { .. } | Self::Replace { .. } | Self::DeleteIf { .. } => 8,
            Self::Usage | Self::SetQuota { .. } => 9,
            Self::WasDone { .. } => ONCE_SINCE,
        }
    }
}

impl Kind for PeerOp<'_> {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::BlockFree { .. } | Self::BlockUnknown { .. } | Self::Adopt { .. } | Self::RemoveNodes { .. }
            | Self::Reparent { .. } | Self::Arrive { .. } | Self::Settle { .. } | Self::Outcome { .. } | Self::Moved | Self::Room
            | Self::TakeOver { .. } | Self::TakeOverNodes | Self::TakeOverEnd | Self::TakeOverDrop | Self::TookOver { .. }
            | Self::Relink { .. } | Self::BlocksOf { .. } | Self::BlocksMoved { .. } | Self::Nameless { .. }
            | Self::Missing { .. } | Self::WayUp { .. } | Self::BlockKeep { .. } | Self::BlockClaim { .. }
            | Self::BlockUnclaim { .. } => 8,
        }
    }
}

impl Kind for NodeReply<'_> {
    #[rustfmt::skip]
    fn since(&self) -> u16 {
        match self {
            Self::Failed(_) | Self::Elsewhere { .. } | Self::Stale { .. } | Self::Done | Self::Length(_) | Self::Bytes(_)
            | Self::Stat(_) | Self::Listed { .. } | Self::Extents { .. } | Self::Block(_) | Self::Blocks(_) | Self::Dir(_)
            | Self::Outcome(_) | Self::Values(_) | Self::Refused(_) | Self::InPlace { .. } | Self::Room { .. }
            | Self::Place { .. } | Self::BlocksOf(_) | Self::Dirs(_) => 8,
            Self::Usage(_) => 9,
        }
    }
}
