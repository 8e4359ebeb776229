//! One question to one worker, and its answer.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{
    DataReply, DataRequest, PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST, Span, check_known, decode_from, encode_for,
};
use forebay_runtime::deadline;
use forebay_trace::Span as Tracing;
use forebay_types::{Error, ErrorKind, Result, SegmentId, WorkerId};

use super::Link;
use super::traced::{of_data, said};
use crate::in_place::{Pin, Rescued, pin_of_read};

/// Why a worker's answer is not there.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The worker can't be reached; it was asked nothing.
    Unreached(Error),
    /// It was asked, and the connection ended or time ran out: what it did is unknown.
    Lost(Error),
    /// It answered that it failed.
    Answered(Error),
}

impl Failure {
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Unreached(error) | Self::Lost(error) | Self::Answered(error) => error,
        }
    }
}

/// Bytes of one segment as a worker gave them.
pub(crate) enum Given {
    Pinned(Arc<Pin>),
    Copied(Bytes),
}

/// What one more MiB adds to a deadline.
const SECOND_PER_BYTES: u64 = 1 << 20;

/// The deadline of a call that moves that many bytes.
pub(crate) fn deadline_for(base: Duration, bytes: u64) -> Duration {
    base + Duration::from_secs(bytes / SECOND_PER_BYTES)
}

/// Asks a worker and waits for its answer.
pub(crate) async fn ask(link: &Link, request: &DataRequest, longest: Duration) -> Result<DataReply, Failure> {
    Ok(ask_for(link, request, Vec::new(), longest).await?.0)
}

/// The same with a payload, there and back.
pub(crate) async fn ask_for(
    link: &Link,
    request: &DataRequest,
    payload: Vec<Bytes>,
    longest: Duration,
) -> Result<(DataReply, Bytes), Failure> {
    let (meta, _span) = written(link, request)?;
    let call = link.connection.call(meta, payload);
    let answer = match deadline::within(longest, call).await {
        Ok(answer) => answer.map_err(|error| lost(link, error))?,
        Err(_) => return Err(late(link.worker, longest)),
    };
    Ok((reply_of(link, &answer.meta)?, answer.payload))
}

/// Asks a worker for bytes, in place when its tier is mapped here, and by memory that both share then; gives the reply and the
/// payload.
pub(crate) async fn ask_bytes(link: &Link, request: &DataRequest, longest: Duration) -> Result<(DataReply, Bytes), Failure> {
    let (meta, _span) = written(link, request)?;
    let answer = match link.in_place() {
        Some(session) => {
            debug_assert!(session.mapping.is_some(), "bytes lie in place in a tier that is mapped here");
            let connection = link.connection.clone();
            // Of what is in the tier it is said where it lies, and all else comes by the socket.
            let call = Rescued::new(async move { connection.call_near(meta, Vec::new()).await }, &session.outbox, pin_of_read);
            deadline::within(longest, call).await
        }
        None => deadline::within(longest, link.connection.call(meta, Vec::new())).await,
    };
    let answer = answer.map_err(|_| late(link.worker, longest))?.map_err(|error| lost(link, error))?;
    Ok((reply_of(link, &answer.meta)?, answer.payload))
}

/// A request's bytes, as the worker reads them; with where in a trace it is, where it is in one and the worker knows what that means: the
/// span ends with the answer.
fn written(link: &Link, request: &DataRequest) -> Result<(Bytes, Tracing), Failure> {
    let version = link.connection.version();
    debug_assert!((PROTOCOL_VERSION_OLDEST..=PROTOCOL_VERSION).contains(&version), "a connection speaks what this build does");
    check_known(request, request.into(), version)
        .map_err(|error| Failure::Answered(error.context(format!("worker {}", link.worker))))?;
    let span = of_data(link.worker, request);
    Ok((said(&span, version, encode_for(version, request)), span))
}

/// Makes the bytes of an answer to a read of `range` of a segment.
pub(crate) fn given(
    link: &Link,
    in_place: Option<(u64, Span)>,
    payload: Bytes,
    segment: SegmentId,
    range: Range<u32>,
) -> Result<Given, Failure> {
    let wrong = |error: Error| Failure::Answered(error);
    match (in_place, link.in_place()) {
        (Some((pin, span)), Some(session)) => Pin::new(session, pin, span, segment, range).map(Given::Pinned).map_err(wrong),
        (Some(_), None) => Err(wrong(Error::internal(format!("worker {} answered in place, which was not asked", link.worker)))),
        (None, _) if payload.len() == range.len() => Ok(Given::Copied(payload)),
        (None, _) => Err(wrong(Error::internal(format!(
            "worker {} answered {} bytes to a read of {}",
            link.worker,
            payload.len(),
            range.len()
        )))),
    }
}

/// The failure for a reply of another variant than the request asks for.
pub(crate) fn misfit(link: &Link, asked: &str) -> Failure {
    Failure::Answered(super::control::unexpected(&format!("worker {}", link.worker), asked))
}

fn reply_of(link: &Link, meta: &[u8]) -> Result<DataReply, Failure> {
    match decode_from::<DataReply>(link.connection.version(), meta) {
        Ok(reply) => reply.or_error().map_err(Failure::Answered),
        // An answer that can't be read says nothing about the object: not `Invalid`, which would end the search.
        Err(error) => Err(Failure::Answered(Error::internal(format!("worker {}: {}", link.worker, error.message())))),
    }
}

fn lost(link: &Link, error: Error) -> Failure {
    match error.kind() {
        // The transport refused to send it, as what is too long for a frame.
        ErrorKind::Invalid => Failure::Answered(error),
        _ => Failure::Lost(Error::retry(format!("worker {}: {}", link.worker, error.message())).with_source(error)),
    }
}

/// A worker was asked, and had so long to answer.
pub(crate) fn late(worker: WorkerId, within: Duration) -> Failure {
    Failure::Lost(Error::retry(format!("worker {worker} did not answer within {} s", within.as_secs())).in_vain())
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use forebay_protocol::{WorkerInfo, decode, encode};
    use forebay_transport::{Address, Listener, Peer, Response, Security, Server, ServerLimits, Service};
    use rustix::fs::{MemfdFlags, SealFlags};

    use super::*;
    use crate::in_place::{Session, host_id};

    const TIER_BYTES: u64 = 4096;

    /// A worker of this host that has a ring, and is done with whatever else it is asked.
    struct Worker;

    impl Service for Worker {
        type Session = Self;

        fn open(&self, _: Peer) -> Result<Self> {
            Ok(Self)
        }
    }

    impl forebay_transport::Session for Worker {
        async fn call(self: &Arc<Self>, meta: Bytes, _: Bytes) -> Response {
            let done = Response::new(encode(&DataReply::Done));
            match decode(&meta).unwrap() {
                DataRequest::Attach => {
                    let meta = encode(&DataReply::Attached { arena_bytes: TIER_BYTES });
                    Response { meta, descriptor: Some(tier()), ..done }
                }
                DataRequest::Ring => Response { opens_ring: true, ..done },
                _ => done,
            }
        }

        fn failed(&self, _: &Bytes) -> Response {
            Response::new(encode(&DataReply::failed(&Error::internal("a defect of the test"))))
        }

        fn notice(self: &Arc<Self>, _: Bytes) {}
    }

    fn tier() -> OwnedFd {
        let tier = rustix::fs::memfd_create("tier", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&tier, TIER_BYTES).unwrap();
        rustix::fs::fcntl_add_seals(&tier, SealFlags::SHRINK).unwrap();
        tier
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_reads_in_place_asks_by_memory_that_both_share() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("worker.sock");
        let listener = Listener::bind(&Address::Unix(socket.clone())).await.unwrap();
        let server = Server::start(listener, Security::default(), Arc::new(Worker), ServerLimits::default()).unwrap();
        let info = WorkerInfo::new(WorkerId(1), host_id().unwrap(), "");
        // In the worker's own process, who speaks the newest version needs neither socket nor ring.
        let security = Security::default().speaking(PROTOCOL_VERSION_OLDEST);
        let longest = Duration::from_secs(10);
        let session = Session::connect(&info, &socket, &security, longest, || {}).await.unwrap();
        session.open_ring(longest).await;
        let connection = session.connection.clone();
        let link = Link { worker: info.id, connection: connection.clone(), session: Some(session), call: None };
        let request = DataRequest::Queue;
        // Many together: without optimisation those that come one after the other may come too slowly for the ring.
        let asking = async {
            while connection.calls_by_ring() < 3 {
                let answers = futures::future::join_all((0..64).map(|_| ask_bytes(&link, &request, longest))).await;
                for answer in answers {
                    let (reply, payload) = answer.unwrap();
                    assert!(matches!(reply, DataReply::Done) && payload.is_empty());
                }
            }
        };
        deadline::within(longest, asking).await.expect("they go by the ring when they come shortly after each other");
        drop((link, server));
        drop(folder);
    }
}
