//! Lines to the other workers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_block_store::pages_verify;
use forebay_metrics::table;
use forebay_protocol::{
    DataReply, DataRequest, DatasetId, Kept, PeerRequest, ShardHeld, WorkerInfo, decode_from, encode, request_for,
};
use forebay_runtime::{Defect, deadline, planted, simulated};
use forebay_shard_store::AskedShares;
use forebay_transport::{Address, Answer, Connection, Security};
use forebay_types::{Error, ErrorKind, FormId, Key, MountId, PAGE_BYTES, PageRun, Result, SegmentId, TextForm, WorkerId};
use parking_lot::Mutex;

/// How long a peer may take to hear of a write.
const TELL_WITHIN: Duration = Duration::from_secs(1);
/// How long a peer may take for a part of a segment.
const COPY_WITHIN: Duration = Duration::from_secs(30);
/// How long a peer may take to say whether it has a shard, which somebody may wait for.
const HELD_WITHIN: Duration = Duration::from_millis(500);
/// How long a peer may take to have an object of a log on its disk, or to say what it has.
const CLAIM_WITHIN: Duration = Duration::from_secs(2);
/// How long a peer may take for what concerns temporary nodes.
const NODES_WITHIN: Duration = Duration::from_secs(5);
/// How long a peer that did not answer is not told itself: writes don't wait for it each.
const AWAY_FOR: Duration = Duration::from_secs(3);

/// A claim, and the log that it is of: the mount, and the object that makes it.
pub(crate) type ClaimName<'a> = (u128, MountId, &'a Key);

/// A question that no cold file answers: how many records there are.
const NEEDS_ALL: &[u8] = b"{\"count\": null}\n";

/// The other workers, who are told of writes and asked for copies. A connection each, made at the first word and kept.
pub(crate) struct Peers {
    security: Security,
    lines: Arc<Mutex<HashMap<WorkerId, Contact>>>,
}

enum Contact {
    Open(String, Connection),
    AwayUntil(Instant),
}

impl Peers {
    pub(crate) fn new(security: Security) -> Self {
        Self { security, lines: Arc::default() }
    }

    /// Closes the lines to workers that are gone.
    pub(crate) fn retain(&self, workers: &[WorkerInfo]) {
        self.lines.lock().retain(|id, _| workers.iter().any(|worker| worker.id == *id));
    }

    /// Says `request` to all `peers` at once and waits until each has answered, or failed to within a second. Best effort, for
    /// what happened past Forebay: the mounts' rules bound how long a peer that did not hear goes on with what it knows.
    pub(crate) async fn tell(&self, peers: &[WorkerInfo], request: &DataRequest) {
        if peers.is_empty() {
            return;
        }
        let message = encode(request);
        futures::future::join_all(peers.iter().map(|peer| self.tell_now(peer, message.clone(), Vec::new()))).await;
    }

    /// Says something to one, unless it did not answer a moment ago: whether it has heard.
    pub(crate) async fn tell_now(&self, peer: &WorkerInfo, message: Bytes, payload: Vec<Bytes>) -> bool {
        if self.is_away(peer.id) {
            return false;
        }
        let told = forebay_runtime::time::timeout(TELL_WITHIN, self.tell_one(peer, message, payload)).await;
        let Err(error) = told.unwrap_or_else(|_| Err(Error::retry("no answer within a second"))) else { return true };
        tracing::debug!(worker = %peer.id, %error, "peer did not hear of a change");
        self.lines.lock().insert(peer.id, Contact::AwayUntil(forebay_runtime::now() + AWAY_FOR));
        false
    }

    /// Asks a peer for those pages of a segment that it holds: their runs, and the pages. `Corrupt` when they are not what came to
    /// the peer: with checksums of its own what was damaged over there, or on its way, would be valid here.
    pub(crate) async fn copy(&self, peer: &WorkerInfo, segment: SegmentId, part: PageRun) -> Result<(Vec<PageRun>, Bytes)> {
        let request = PeerRequest::Copy { segment, start: part.start, pages: part.len };
        match self.answer(peer, (request.encode(), Vec::new()), COPY_WITHIN, "no answer to a copy").await? {
            (DataReply::Copied { runs, sums }, pages) => {
                let pages = as_they_came(pages);
                Ok((verified(peer.id, segment, part, runs, &sums, &pages)?, pages))
            }
            _ => Err(something_else("a copy")),
        }
    }

    /// The same where this worker misses them, and tells the peer that it will have them.
    pub(crate) async fn missed(&self, peer: &WorkerInfo, asker: WorkerId, segment: SegmentId, part: PageRun) -> Result<Shared> {
        let request = PeerRequest::Missed { asker, segment, start: part.start, pages: part.len };
        match reply(self.ask(peer, request.encode(), Vec::new()).await?)? {
            (DataReply::Shared(forebay_protocol::Shared { runs, sums, holds, elsewhere, also, coming }), pages) => {
                let pages = as_they_came(pages);
                let runs = verified(peer.id, segment, part, runs, &sums, &pages)?;
                let others = elsewhere.into_iter().chain(also.into_iter().flatten()).collect();
                Ok(Shared { runs, pages, holds, others, coming })
            }
            _ => Err(something_else("a question for pages")),
        }
    }

    /// Asks a peer what a form is.
    pub(crate) async fn form(&self, peer: &WorkerInfo, form: FormId) -> Result<Option<Arc<TextForm>>> {
        let request = PeerRequest::Form { form };
        match self.answer(peer, (request.encode(), Vec::new()), TELL_WITHIN, "no answer about a form").await? {
            (DataReply::Form(Some(known)), _) if known.id() == form && known.check().is_ok() => Ok(Some(known)),
            _ => Ok(None),
        }
    }

    /// Has a peer bring a shard of a dataset, and waits until it has.
    pub(crate) async fn bring_shard(&self, peer: &WorkerInfo, dataset: &DatasetId, shard: u32, within: Duration) -> Result<()> {
        let within_ms = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
        let request = encode(&DataRequest::AskShard { dataset: dataset.clone(), shard, within_ms });
        match self.answer(peer, (request, vec![Bytes::from_static(NEEDS_ALL)]), within, "no answer in time").await? {
            (DataReply::Shard { .. }, _) => Ok(()),
            _ => Err(something_else("a question to a shard")),
        }
    }

    /// Asks a peer how it serves a shard, and what that was asked.
    pub(crate) async fn shard_held(&self, peer: &WorkerInfo, shard: u128) -> Result<Option<(ShardHeld, Option<AskedShares>)>> {
        if self.is_away(peer.id) {
            return Ok(None);
        }
        let request = PeerRequest::ShardHeld { shard };
        match self.answer(peer, (request.encode(), Vec::new()), HELD_WITHIN, "no answer about a shard").await? {
            // A copy is worth having also where this can't be read.
            (DataReply::ShardHeld(held), asked) => Ok(held.map(|held| (held, AskedShares::decode(&asked).ok()))),
            _ => Err(something_else("a question about a shard")),
        }
    }

    /// A part of a file that a peer's shard came with; the file by its place among those of the shard. Not verified yet.
    pub(crate) async fn shard_part(
        &self,
        peer: &WorkerInfo,
        (shard, file): (u128, u32),
        start: u64,
        bytes: u32,
    ) -> Result<Bytes> {
        let request = PeerRequest::ShardPart { shard, file, start, bytes };
        match self.answer(peer, (request.encode(), Vec::new()), COPY_WITHIN, "no answer to a copy").await? {
            (DataReply::Done, part) if part.len() == bytes as usize => Ok(part),
            _ => Err(something_else("a copy of a shard")),
        }
    }

    /// Has a peer know on its disk that this worker is about to claim a log, by the object that is to say so.
    pub(crate) async fn claim_begin(
        &self,
        peer: &WorkerInfo,
        claim: u128,
        writer: WorkerId,
        mount: MountId,
        key: &Key,
    ) -> Result<()> {
        let request = PeerRequest::ClaimBegin { claim, writer, mount, key: key.clone() };
        self.of_claim(peer, &request, Vec::new()).await.map(drop)
    }

    /// Has a peer keep the next object under a claim on its disk.
    pub(crate) async fn claim_keep(&self, peer: &WorkerInfo, claim: u128, number: u64, object: Bytes) -> Result<()> {
        self.of_claim(peer, &PeerRequest::ClaimKeep { claim, number }, vec![object]).await.map(drop)
    }

    /// What a peer has under a claim from a number on, as its objects; none where it knows nothing of the claim.
    pub(crate) async fn claim_kept(
        &self,
        peer: &WorkerInfo,
        (claim, mount, key): ClaimName<'_>,
        from: u64,
        close: bool,
    ) -> Result<Option<KeptThere>> {
        let request = PeerRequest::ClaimKept { claim, from, close, mount, key: key.clone() };
        let (DataReply::Kept(kept), mut payload) = self.of_claim(peer, &request, Vec::new()).await? else {
            return Err(something_else("a question about a claim"));
        };
        let Some(Kept { end, is_closed, bytes }) = kept else { return Ok(None) };
        let mut objects = Vec::with_capacity(bytes.len());
        for bytes in bytes {
            if bytes as usize > payload.len() {
                return Err(Error::invalid("the answer about a claim has fewer bytes than it says"));
            }
            objects.push(payload.split_to(bytes as usize));
        }
        Ok(Some(KeptThere { end, is_closed, objects }))
    }

    /// Tells a peer that a claim is over; it finds that out by itself otherwise.
    pub(crate) async fn claim_end(&self, peer: &WorkerInfo, (claim, mount, key): ClaimName<'_>) {
        if let Err(error) = self.of_claim(peer, &PeerRequest::ClaimEnd { claim, mount, key: key.clone() }, Vec::new()).await {
            tracing::debug!(worker = %peer.id, %error, "a peer did not hear that a claim is over");
        }
    }

    /// One that does not answer is asked for nothing of the kind for a while.
    async fn of_claim(&self, peer: &WorkerInfo, request: &PeerRequest, payload: Vec<Bytes>) -> Result<(DataReply, Bytes)> {
        let call = self.ask(peer, request.encode(), payload);
        let answer = forebay_runtime::time::timeout(CLAIM_WITHIN, call).await;
        let answer = answer.unwrap_or_else(|_| Err(Error::retry("no answer about a claim in time"))).inspect_err(|_| {
            self.lines.lock().insert(peer.id, Contact::AwayUntil(forebay_runtime::now() + AWAY_FOR));
        })?;
        reply(answer)
    }

    /// Says something about temporary nodes, and gives the answer.
    pub(crate) async fn ask_nodes(&self, peer: &WorkerInfo, message: Bytes, payload: Option<Bytes>) -> Result<Answer> {
        ask_nodes(&self.lines, &self.security, peer, message, payload).await
    }

    /// The same for who goes on without these peers.
    pub(crate) fn ask_nodes_owned(
        &self,
        peer: WorkerInfo,
        message: Bytes,
    ) -> impl Future<Output = Result<Answer>> + Send + use<> {
        let (lines, security) = (Arc::clone(&self.lines), self.security.clone());
        async move { ask_nodes(&lines, &security, &peer, message, None).await }
    }

    async fn tell_one(&self, peer: &WorkerInfo, message: Bytes, payload: Vec<Bytes>) -> Result<()> {
        reply(self.ask(peer, message, payload).await?).map(drop)
    }

    /// What a peer answers in time; `late` says that it has not.
    async fn answer(
        &self,
        peer: &WorkerInfo,
        (message, payload): (Bytes, Vec<Bytes>),
        within: Duration,
        late: &'static str,
    ) -> Result<(DataReply, Bytes)> {
        let call = self.ask(peer, message, payload);
        reply(deadline::within(within, call).await.map_err(|_| Error::retry(late))??)
    }

    async fn ask(&self, peer: &WorkerInfo, message: Bytes, payload: Vec<Bytes>) -> Result<Answer> {
        ask(&self.lines, &self.security, peer, message, payload).await
    }

    /// Whether it did not answer a moment ago.
    pub(crate) fn is_away(&self, peer: WorkerId) -> bool {
        matches!(self.lines.lock().get(&peer), Some(Contact::AwayUntil(until)) if forebay_runtime::now() < *until)
    }
}

/// What a peer has answered, and the payload.
fn reply(answer: Answer) -> Result<(DataReply, Bytes)> {
    let said: DataReply = decode_from(answer.version, &answer.meta)?;
    Ok((said.or_error()?, answer.payload))
}

fn something_else(asked: &str) -> Error {
    Error::internal(format!("a peer answered {asked} with something else"))
}

/// What a peer has under a claim.
pub(crate) struct KeptThere {
    /// The number behind its last object.
    pub(crate) end: u64,
    /// It takes nothing more.
    pub(crate) is_closed: bool,
    /// Those that were asked for, perhaps not all.
    pub(crate) objects: Vec<Bytes>,
}

/// What a peer has of pages that are missed.
pub(crate) struct Shared {
    /// In order, and verified.
    pub(crate) runs: Vec<PageRun>,
    /// Page after page.
    pub(crate) pages: Bytes,
    /// It has something of the segment.
    pub(crate) holds: bool,
    /// Who may have more, by its word, in this order.
    pub(crate) others: Vec<WorkerId>,
    /// More of them is on its way there still.
    pub(crate) coming: bool,
}

/// The pages of an answer. In a simulation a byte is another one now and then: memory rots over there, and what was read of it goes on its way.
fn as_they_came(pages: Bytes) -> Bytes {
    if pages.is_empty() || !simulated::happens("copy-damaged") {
        return pages;
    }
    let mut damaged = pages.to_vec();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x40;
    damaged.into()
}

/// The runs that a peer gave of `part`, in order, when their pages have the checksums with which they came to it. Nothing else that it
/// says of them is believed.
fn verified(
    peer: WorkerId,
    segment: SegmentId,
    part: PageRun,
    runs: Vec<(u32, u32)>,
    sums: &[u32],
    pages: &[u8],
) -> Result<Vec<PageRun>> {
    let mut at = part.start;
    let mut fits = |(start, len): &(u32, u32)| {
        let end = start.checked_add(*len).filter(|end| *start >= at && *len > 0 && *end <= part.end());
        at = end.unwrap_or(at);
        end.is_some()
    };
    if !runs.iter().all(&mut fits) {
        return Err(Error::invalid("the answer to a copy doesn't fit the question"));
    }
    let runs: Vec<_> = runs.into_iter().map(|(start, len)| PageRun::new(start, start + len)).collect();
    if !verify(segment, &runs, pages, sums) && !planted(Defect::ReplicaAdopted) {
        table::WORKER_COPIES_DAMAGED.only().add(1);
        tracing::warn!(%segment, worker = %peer, page = part.start, pages = part.len, "pages of a peer do not verify");
        return Err(Error::new(ErrorKind::Corrupt, format!("pages of worker {peer} do not verify")));
    }
    Ok(runs)
}

/// Whether the pages of some runs, one run behind the other, have these checksums.
fn verify(segment: SegmentId, runs: &[PageRun], mut pages: &[u8], mut sums: &[u32]) -> bool {
    for run in runs {
        let bytes = run.len as usize * PAGE_BYTES as usize;
        let (Some((these, rest)), Some((theirs, others))) =
            (pages.split_at_checked(bytes), sums.split_at_checked(run.len as usize))
        else {
            return false;
        };
        if !pages_verify(segment, *run, these, theirs) {
            return false;
        }
        (pages, sums) = (rest, others);
    }
    pages.is_empty() && sums.is_empty()
}

type Lines = Mutex<HashMap<WorkerId, Contact>>;

async fn line(lines: &Lines, security: &Security, peer: &WorkerInfo) -> Result<Connection> {
    let open = match lines.lock().get(&peer.id) {
        Some(Contact::Open(address, line)) if *address == peer.address && !line.is_closed() => Some(line.clone()),
        _ => None,
    };
    match open {
        Some(line) => Ok(line),
        None => {
            let line = Connection::connect(&Address::Tcp(peer.address.clone()), security).await?;
            lines.lock().insert(peer.id, Contact::Open(peer.address.clone(), line.clone()));
            Ok(line)
        }
    }
}

/// Asks a peer in the version of the protocol that it speaks.
async fn ask(lines: &Lines, security: &Security, peer: &WorkerInfo, message: Bytes, payload: Vec<Bytes>) -> Result<Answer> {
    let line = line(lines, security, peer).await?;
    let message = request_for(line.version(), message).map_err(|error| error.context(format!("worker {}", peer.address)))?;
    line.call(message, payload).await
}

async fn ask_nodes(
    lines: &Lines,
    security: &Security,
    peer: &WorkerInfo,
    message: Bytes,
    payload: Option<Bytes>,
) -> Result<Answer> {
    let call = ask(lines, security, peer, message, payload.into_iter().collect());
    forebay_runtime::time::timeout(NODES_WITHIN, call).await.map_err(|_| Error::retry("no answer about temporary nodes"))?
}
