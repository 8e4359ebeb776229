//! Calls that failed by a defect in the midst of a change: named with who sent them, and not tried again.
//!
//! What such a call had changed of the names is taken back where it lies; others go on. Reads are tried again, for they change nothing.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use forebay_rights::{Action, needs};
use forebay_transport::Peer;
use forebay_types::digest;
use parking_lot::Mutex;

use forebay_protocol::NodeCall;

/// Calls that are remembered for what they did.
const REFUSED_MAX: usize = 1_024;

/// The calls that failed, by what they say and how many bytes came with them.
#[derive(Default)]
pub(super) struct Refused {
    is_any: AtomicBool,
    calls: Mutex<HashSet<u128>>,
}

impl Refused {
    pub(super) fn has(&self, meta: &[u8], payload_bytes: usize) -> bool {
        self.is_any.load(Relaxed) && self.calls.lock().contains(&key(meta, payload_bytes))
    }

    /// Watches over a call until it is dropped.
    pub(super) fn watch<'a>(&'a self, call: &NodeCall<'_>, meta: &'a [u8], payload_bytes: usize, peer: &'a Peer) -> Watched<'a> {
        let (what, changes) = ((&call.op).into(), needs::node(&call.op).action != Action::Read);
        Watched { refused: self, meta, payload_bytes, peer, what, changes }
    }
}

/// A call that is under way.
pub(super) struct Watched<'a> {
    refused: &'a Refused,
    meta: &'a [u8],
    payload_bytes: usize,
    peer: &'a Peer,
    what: &'static str,
    changes: bool,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let (what, who, from) = (self.what, self.peer.caller.who(), &self.peer.address);
        if !self.changes {
            tracing::error!(what, %who, from, "a call about temporary nodes failed by a defect");
            return;
        }
        // No more of it: it may have secrets.
        tracing::error!(what, %who, from, "a call about temporary nodes failed by a defect, and is refused from now on");
        let mut calls = self.refused.calls.lock();
        if calls.len() < REFUSED_MAX {
            calls.insert(key(self.meta, self.payload_bytes));
        }
        self.refused.is_any.store(true, Relaxed);
    }
}

fn key(meta: &[u8], payload_bytes: usize) -> u128 {
    // Who tries again has another number.
    digest(&[&(payload_bytes as u64).to_le_bytes(), NodeCall::without_number(meta)])
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use bytes::Bytes;
    use forebay_coordinator::CoordinatorSettings;
    use forebay_nodes::{NodeErrorKind, ROOT};
    use forebay_protocol::{NodeCall, NodeOp, NodeReply, Raw};
    use forebay_transport::{Connection, Security};

    use crate::Tuning;
    use crate::nodes::PLANTED;
    use crate::process::bed::Bed;

    async fn ask(connection: &Connection, path: &str, op: NodeOp<'_>) -> Result<Option<Vec<u8>>, NodeErrorKind> {
        let call = NodeCall { from: ROOT, moves: 0, path, op, number: None }.encode();
        let answer = connection.call(call, Vec::<Bytes>::new()).await.unwrap();
        match NodeReply::decode(&answer.meta).unwrap() {
            NodeReply::Failed(error) => Err(error.kind),
            NodeReply::Bytes(Raw(bytes)) => Ok(Some(bytes.to_vec())),
            _ => Ok(None),
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_that_panics_is_refused_from_then_on_and_others_go_on() {
        let bed = Bed::start(CoordinatorSettings::LEASE).await;
        let worker = bed.worker("one", Tuning { beat: Duration::from_millis(100), ..Tuning::default() }).await;
        let connect = async || Connection::connect(&worker.address(), &Security::default()).await.unwrap();
        let (one, other) = (connect().await, connect().await);
        let put = |value: &'static [u8]| NodeOp::Put { value: Raw(value) };
        for round in 0..1_000 {
            assert_eq!(ask(&one, "planted", put(b"it")).await, Err(NodeErrorKind::Internal));
            assert_eq!(PLANTED.load(Relaxed), 1, "it is not tried again");
            let name = format!("n{}", round % 10);
            assert_eq!(ask(&other, &name, put(b"value")).await, Ok(None));
            assert_eq!(ask(&one, &name, NodeOp::Get).await, Ok(Some(b"value".to_vec())));
        }
        assert_eq!(ask(&other, "planted", NodeOp::Get).await, Err(NodeErrorKind::NotFound), "nothing of it is left");
        assert_eq!(ask(&other, "planted", put(b"another")).await, Err(NodeErrorKind::Internal), "another call is tried");
        assert_eq!(PLANTED.load(Relaxed), 2);
        worker.shutdown().await;
    }
}
