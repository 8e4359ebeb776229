//! What each request is answered.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{
    AccessWay, DataReply, DataRequest, DatasetId, DraftCall, Hint, PeerRequest, PutCondition, Shared, TierDeed, TierOrder,
    WantedRecords, encode,
};
use forebay_rights::needs;
use forebay_transport::Response;
use forebay_types::{Cell, Error, Key, MountId, ObjectInfo, ObjectVersion, OperationId, PageRun, Result, SegmentId};

use super::{WorkerSession, of_peer, reply};
use crate::origin::{Ahead, HeldFor, Priority};
use crate::read::{Reader, WantedObject};
use crate::shards::Asking;
use crate::signals::Made;

/// Longest time that a question to a shard may wait.
const WITHIN_MS_MAX: u32 = 600_000;
/// The same of a question for what left the tiers, or was accessed: who is gone is not waited for.
const DEPARTED_WITHIN_MS_MAX: u32 = 60_000;

impl WorkerSession {
    pub(super) async fn answer_peer(&self, request: Result<PeerRequest>, payload: Bytes) -> Result<Response> {
        let (request, rooms) = (request?, &self.rooms);
        self.may(|| needs::peer(&request), || of_peer((&request).into()))?;
        Ok(match request {
            PeerRequest::Copy { segment, start, pages } => {
                // What another worker is sent takes its time as what a reader is sent.
                let mut queued = rooms.signals.load.begin();
                let (runs, sums, payload) = rooms.replicas.copy(segment, PageRun::of(start, pages)?).await;
                queued.sends(rooms.signals.send(&payload).await);
                Response {
                    meta: encode(&DataReply::Copied { runs, sums }),
                    payload,
                    sent: Some(Box::new(queued)),
                    ..Response::default()
                }
            }
            PeerRequest::Missed { asker, segment, start, pages } => {
                let run = PageRun::of(start, pages)?;
                // Noted first: who asks next is sent to the asker.
                let mut others = rooms.cluster.missed_by(asker, segment, run).into_iter();
                let (elsewhere, also) = (others.next(), [others.next(), others.next()]);
                let coming = rooms.origin.flights.coming(segment, run, (rooms.cluster.id, asker)).await;
                let mut queued = rooms.signals.load.begin();
                let (runs, sums, payload) = rooms.replicas.copy(segment, run).await;
                queued.sends(rooms.signals.send(&payload).await);
                let holds = rooms.origin.store.held(segment).bytes > 0 || rooms.origin.flights.brings_some_of(segment);
                let meta = encode(&DataReply::Shared(Shared { runs, sums, holds, elsewhere, also, coming }));
                Response { meta, payload, sent: Some(Box::new(queued)), ..Response::default() }
            }
            PeerRequest::Form { form } => reply(DataReply::Form(rooms.forms.known(form))),
            PeerRequest::Coming { mount, key, records } => {
                rooms.shards.coming(mount, &key, records);
                self.heard()
            }
            PeerRequest::ShardHeld { shard } => self.shard_held(shard).await?,
            PeerRequest::ShardPart { shard, file, start, bytes } => {
                let payload = vec![rooms.shards.part(shard, file, start, bytes).await?];
                rooms.signals.send(&payload).await;
                Response { meta: encode(&DataReply::Done), payload, ..Response::default() }
            }
            PeerRequest::ClaimBegin { claim, writer, mount, key } => {
                rooms.shards.claim_begin(claim, writer, mount, &key).await?;
                reply(DataReply::Done)
            }
            PeerRequest::ClaimKeep { claim, number } => {
                rooms.shards.claim_keep(claim, number, payload).await?;
                reply(DataReply::Done)
            }
            PeerRequest::ClaimKept { claim, from, close, mount, key } => {
                let (kept, payload) = rooms.shards.claim_kept((claim, mount, &key), from, close).await?.unzip();
                let meta = encode(&DataReply::Kept(kept));
                Response { meta, payload: payload.unwrap_or_default(), ..Response::default() }
            }
            PeerRequest::ClaimEnd { claim, mount, key } => {
                rooms.shards.claim_end((claim, mount, &key)).await;
                reply(DataReply::Done)
            }
            PeerRequest::Came { info } => {
                rooms.shards.note_came(&info, payload).await?;
                rooms.writes.note_change(info.version.mount, &info.version.key, Some(&info.version.tag));
                self.heard()
            }
        })
    }

    pub(super) async fn answer(self: &Arc<Self>, request: Result<DataRequest>, payload: Bytes) -> Result<Response> {
        let (request, rooms) = (request?, &self.rooms);
        self.hear_of_mount(&request).await;
        self.may_ask(&request)?;
        // What may wait does so in a place of its own, so that a read of what is at hand, of which there are most, is small.
        Ok(match request {
            DataRequest::Read { operation, version, start, len, in_place } => {
                self.read(self.reader(operation, in_place), &version, start, len).await?
            }
            DataRequest::ReadLatest { operation, mount, key, range, in_place } => {
                Box::pin(self.read_latest(self.reader(operation, in_place), mount, &key, range)).await?
            }
            DataRequest::ReadObject { operation, mount, key, range, first, complete, in_place } => {
                let wanted = WantedObject { range, first, attributes: Some(complete) };
                Box::pin(self.read_object(self.reader(operation, in_place), mount, &key, wanted)).await?
            }
            DataRequest::ReadCell { operation, version, form, row_group, column, in_place } => {
                let cell = Cell { row_group, column };
                Box::pin(self.read_cell(self.reader(operation, in_place), version, form, cell)).await?
            }
            DataRequest::SelectRows(wanted) => Box::pin(self.select_rows(wanted)).await?,
            DataRequest::Stat { mount, key, complete } => {
                let (info, attributes) = Box::pin(rooms.catalogue.stat(mount, &key, complete)).await?;
                reply(DataReply::Stat(info, attributes))
            }
            DataRequest::Attach => return self.attach(),
            DataRequest::Ring => return self.ring(),
            DataRequest::Open { mount, key } => reply(DataReply::Info(Box::pin(rooms.catalogue.open(mount, &key)).await?)),
            DataRequest::List { mount, prefix, folders, after, limit } => {
                reply(DataReply::Listed(Box::pin(rooms.catalogue.list(mount, &prefix, folders, after.as_ref(), limit)).await?))
            }
            DataRequest::Prefetch { operation, version, ranges, keep, urgent, hold_ms, standing } => {
                let within = Duration::from_millis(hold_ms.into());
                let held_for = (hold_ms > 0).then_some(HeldFor { operation, by: self.bringer, within });
                let priority = match held_for {
                    _ if urgent => Priority::Urgent,
                    Some(_) => Priority::Prefetch,
                    None => Priority::Background,
                };
                let turn = rooms.origin.plan(operation, standing);
                Box::pin(self.prefetch(&version, &ranges, Ahead { priority, turn: Some(turn), keep, held_for })).await?
            }
            DataRequest::Put { mount, key, condition } => Box::pin(self.put(mount, &key, condition, payload)).await?,
            DataRequest::PutBegin { mount, key } => Box::pin(self.put_begin(mount, &key)).await?,
            DataRequest::PutPart { upload, part } => {
                Box::pin(self.uploads.part(&rooms.writes, upload, part, payload)).await?;
                reply(DataReply::Done)
            }
            DataRequest::PutCommit { upload, parts, condition } => Box::pin(self.commit(upload, parts, condition)).await?,
            DataRequest::PutAbort { upload } => {
                Box::pin(self.uploads.abort(&rooms.writes, upload)).await?;
                reply(DataReply::Done)
            }
            DataRequest::Drafts { operation, call } => Box::pin(self.drafts(operation, call)).await?,
            DataRequest::Delete { mount, key } => Box::pin(self.delete(mount, &key)).await?,
            DataRequest::Refresh { mount, prefix } => {
                rooms.writes.refresh(mount, &prefix);
                rooms.shards.refresh();
                reply(DataReply::Done)
            }
            // What the peer says of the version is not believed: words of two writers may overtake each other. It is kept on, no more.
            DataRequest::Changed { mount, key, info } => {
                rooms.writes.note_change(mount, &key, info.as_ref().map(|info| &info.version.tag));
                rooms.shards.note_change(mount, &key, info.is_some());
                self.heard()
            }
            DataRequest::Free { segments } => self.free(&segments),
            DataRequest::Keep { segments, keep } => self.keep(&segments, keep),
            DataRequest::TierOrder(order) => self.tier_order(&order)?,
            DataRequest::Held { segments } => self.held(&segments),
            DataRequest::Queue => {
                let (queue, routes) = (rooms.signals.load.queue(), rooms.cluster.routes().version());
                reply(DataReply::Queue(Hint { queue, routes }))
            }
            DataRequest::Present { runs } => {
                let held = runs.iter().map(|(segment, run)| rooms.origin.store.state(*segment, *run).missing.is_empty());
                reply(DataReply::Present(held.collect()))
            }
            DataRequest::Departed { since, within_ms } => {
                let within = within(within_ms.min(DEPARTED_WITHIN_MS_MAX));
                reply(DataReply::Departed(Box::pin(rooms.signals.changes.since(since, within)).await))
            }
            DataRequest::Accesses(wanted) => {
                let within = within(wanted.within_ms.min(DEPARTED_WITHIN_MS_MAX));
                reply(DataReply::Accesses(Box::pin(rooms.signals.accessed.since(wanted, within)).await))
            }
            DataRequest::AskShard { dataset, shard, within_ms } => self.ask_lines(dataset, shard, within_ms, payload).await?,
            DataRequest::GetRecords(wanted) => self.get_records(wanted, payload).await?,
            DataRequest::Shards { dataset } => reply(DataReply::Shards(Box::pin(rooms.shards.of(&dataset)).await?)),
            DataRequest::MergeShard { dataset, shard, within_ms } => {
                Box::pin(self.merge_shard(dataset, shard, within_ms)).await?
            }
            DataRequest::ChangeShard { dataset, shard, call, within_ms, after } => {
                let version = Box::pin(rooms.shards.change(dataset, shard, (call, after), within(within_ms), &payload)).await?;
                reply(DataReply::ShardChanged { version })
            }
            DataRequest::Report => reply(DataReply::Report(Box::new(self.report()))),
        })
    }

    fn tier_order(&self, order: &TierOrder) -> Result<Response> {
        let segments = order.segments()?;
        Ok(match order.what {
            TierDeed::Free => self.free(&segments),
            TierDeed::Keep => self.keep(&segments, true),
            TierDeed::LetGo => self.keep(&segments, false),
        })
    }

    fn keep(&self, segments: &[SegmentId], keep: bool) -> Response {
        segments.iter().for_each(|segment| {
            self.rooms.origin.store.set_keep(*segment, keep);
        });
        reply(DataReply::Done)
    }

    /// What is known is forgotten before this, and the view is looked at last: who is not in there answers from nothing older.
    fn heard(&self) -> Response {
        let cluster = &self.rooms.cluster;
        let view = if cluster.hearing.holds() { cluster.view().version } else { 0 };
        reply(DataReply::Heard { view })
    }

    async fn prefetch(&self, version: &ObjectVersion, ranges: &[(u64, u32)], ahead: Ahead) -> Result<Response> {
        Ok(reply(DataReply::Fetched { bytes: self.rooms.origin.prefetch(version, ranges, ahead).await? }))
    }

    /// Decoded columns of an object go with its first segment.
    fn free(&self, segments: &[SegmentId]) -> Response {
        let (store, forms) = (&self.rooms.origin.store, &self.rooms.forms);
        let cells = segments.iter().flat_map(|segment| forms.take_cells(*segment));
        let segments: Vec<_> = cells.chain(segments.iter().copied()).collect();
        reply(DataReply::Freed { bytes: segments.iter().map(|segment| store.free(*segment)).sum() })
    }

    fn held(&self, segments: &[SegmentId]) -> Response {
        let held = segments.iter().map(|segment| self.rooms.origin.store.held(*segment));
        reply(DataReply::Held(held.collect()))
    }

    /// A log of a shard is an object too, whoever writes it.
    async fn put(&self, mount: MountId, key: &Key, condition: PutCondition, payload: Bytes) -> Result<Response> {
        self.may_order(mount, key, Some((&condition, &payload))).await?;
        let put = self.rooms.writes.put(mount, key, condition, payload).await;
        self.rooms.shards.note_change(mount, key, put.is_ok());
        let info = put?;
        self.written(&info);
        Ok(reply(DataReply::Info(info)))
    }

    async fn commit(&self, upload: u64, parts: u32, condition: PutCondition) -> Result<Response> {
        if let Some((mount, key)) = self.uploads.draft(&self.rooms.writes, upload) {
            self.may_commit(mount, &key).await?;
        } else if let Some((mount, key)) = self.uploads.begun(upload) {
            // Its log may be claimed by now.
            self.may_forgo(mount, &key, Some(&condition)).await?;
        }
        let info = self.uploads.commit(&self.rooms.writes, upload, parts, condition).await?;
        self.rooms.shards.note_change(info.version.mount, &info.version.key, true);
        self.written(&info);
        Ok(reply(DataReply::Info(info)))
    }

    async fn delete(&self, mount: MountId, key: &Key) -> Result<Response> {
        self.may_order_without(mount, key).await?;
        let deleted = self.rooms.writes.delete(mount, key).await;
        self.rooms.shards.note_change(mount, key, false);
        deleted?;
        self.changed((mount, key), 0, AccessWay::Deleted);
        Ok(reply(DataReply::Done))
    }

    fn written(&self, info: &ObjectInfo) {
        let version = &info.version;
        self.changed((version.mount, &version.key), version.size, AccessWay::Written);
    }

    /// For whoever records accesses.
    fn changed(&self, object: (MountId, &Key), bytes: u64, way: AccessWay) {
        self.rooms.signals.accessed.made(&Made { operation: None, object, start: 0, bytes, times: 1, way });
    }

    async fn put_begin(&self, mount: MountId, key: &Key) -> Result<Response> {
        self.may_order(mount, key, None).await?;
        let (upload, part_bytes) = self.uploads.begin(&self.rooms.writes, mount, key).await?;
        Ok(reply(DataReply::Upload { upload, part_bytes }))
    }

    async fn drafts(&self, operation: OperationId, call: DraftCall) -> Result<Response> {
        let (uploads, writes) = (&self.uploads, &self.rooms.writes);
        match call {
            DraftCall::Open { mount, below } => {
                // What a manifest orders is looked at where it is written as one object.
                self.may_order(mount, &below, None).await?;
                uploads.open_drafts(writes, operation, mount, below).await?;
            }
            DraftCall::Begin { mount, key } => {
                let (upload, part_bytes) = uploads.begin_draft(writes, operation, mount, &key).await?;
                return Ok(reply(DataReply::Upload { upload, part_bytes }));
            }
            DraftCall::End => uploads.end_drafts(writes, operation).await,
        }
        Ok(reply(DataReply::Done))
    }

    async fn merge_shard(&self, dataset: DatasetId, shard: u32, within_ms: u32) -> Result<Response> {
        self.rooms.shards.merge(dataset, shard, within(within_ms)).await?;
        Ok(reply(DataReply::Done))
    }

    async fn ask_lines(&self, dataset: DatasetId, shard: u32, within_ms: u32, questions: Bytes) -> Result<Response> {
        Box::pin(self.ask_shard(dataset, shard, within_ms, Asking::Lines(questions))).await
    }

    async fn get_records(&self, wanted: WantedRecords, keys: Bytes) -> Result<Response> {
        let WantedRecords { dataset, shard, within_ms, attributes, versioned } = wanted;
        Box::pin(self.ask_shard(dataset, shard, within_ms, Asking::Records { keys, attributes, versioned })).await
    }

    async fn ask_shard(&self, dataset: DatasetId, shard: u32, within_ms: u32, asking: Asking) -> Result<Response> {
        let (answers, queued) = self.rooms.shards.ask(dataset, shard, within(within_ms), asking).await?;
        let payload = vec![Bytes::from(answers)];
        self.rooms.signals.send(&payload).await;
        let meta = encode(&DataReply::Shard { queue: queued.queue, steps: queued.steps });
        Ok(Response { meta, payload, ..Response::default() })
    }

    async fn shard_held(&self, shard: u128) -> Result<Response> {
        let (held, asked) = self.rooms.shards.held(shard).await.unzip();
        let payload = asked.flatten().map(|asked| asked.encode().map(Bytes::from)).transpose()?;
        let meta = encode(&DataReply::ShardHeld(held));
        Ok(Response { meta, payload: payload.into_iter().collect(), ..Response::default() })
    }

    fn reader(&self, operation: OperationId, in_place: bool) -> Reader<'_> {
        Reader { operation, pins: (in_place && self.attached.load(Relaxed)).then_some(&self.pins) }
    }

    /// Memory is shared with processes of the same user on the same host only.
    fn check_beside(&self) -> Result<()> {
        if !(self.peer.unix && self.peer.same_user) {
            return Err(Error::denied(
                "reading in place is for processes of the same user on the same host: read without it here".to_string(),
            ));
        }
        match self.rooms.in_place.on {
            true => Ok(()),
            false => Err(Error::denied("this worker runs without reading in place: read without it here".to_string())),
        }
    }

    fn ring(&self) -> Result<Response> {
        self.check_beside()?;
        Ok(Response { meta: encode(&DataReply::Done), opens_ring: true, ..Response::default() })
    }

    fn attach(&self) -> Result<Response> {
        self.check_beside()?;
        let arena = self.rooms.origin.store.arena()?;
        self.attached.store(true, Relaxed);
        let meta = encode(&DataReply::Attached { arena_bytes: arena.bytes });
        Ok(Response { meta, descriptor: Some(arena.fd), ..Response::default() })
    }
}

fn within(ms: u32) -> Duration {
    Duration::from_millis(ms.min(WITHIN_MS_MAX).into())
}
