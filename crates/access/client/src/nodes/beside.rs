//! Blocks that this process writes to where they lie.

use std::sync::Arc;

use forebay_nodes::{BlockRef, ROOT};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, WorkerInfo};
use forebay_runtime::time::timeout;
use forebay_types::BLOCK_BYTES;

use super::Nodes;
use crate::connect::{of_node, said};
use crate::in_place::{Rescued, Writing, pin_of_node};

/// Shorter blocks are sent: they cost less than the calls.
const BYTES_MIN: usize = BLOCK_BYTES as usize / 8 * 7 + 1;

impl Nodes {
    /// Whether blocks of a value are likely to be written by this process.
    pub(super) fn goes_in_place(&self, path: &str, bytes: usize) -> bool {
        let beside =
            |worker: Arc<WorkerInfo>| self.shared.routes.connections.session(&worker).is_some_and(|it| it.mapping.is_some());
        bytes >= BYTES_MIN && self.data_worker(path).is_ok_and(beside)
    }

    /// Writes a block to where it will lie in the memory of a worker beside this process. None when it is to be sent: the worker
    /// is elsewhere, or has no room right now, or the block is a small one.
    ///
    /// For bytes that lie together: many parts that don't end where pages do cost more so than over the socket.
    pub(super) async fn write_beside(&self, worker: &Arc<WorkerInfo>, block: &[u8]) -> Option<BlockRef> {
        let bytes = block.len();
        if !(BYTES_MIN..=BLOCK_BYTES as usize).contains(&bytes) {
            return None;
        }
        let link = self.shared.routes.connections.link(worker).await.ok()?;
        let session = link.in_place()?;
        let ask = |op: NodeOp<'static>| {
            let (connection, span) = (link.connection.clone(), of_node(worker.id, &op));
            let call = NodeCall { from: ROOT, moves: 0, path: "", op, number: None };
            let message = said(&span, connection.version(), call.encode());
            let asked = async move {
                let answer = connection.call_near(message, Vec::new()).await;
                drop(span);
                answer
            };
            timeout(self.shared.routes.connections.read_deadline(), Rescued::new(asked, &session.outbox, pin_of_node))
        };
        let descriptor = session.writing.get().is_none();
        let answer = ask(NodeOp::Prepare { bytes: bytes as u32, descriptor }).await.ok()?.ok()?;
        let NodeReply::Place { pin, span } = NodeReply::decode(&answer.meta).ok()? else { return None };
        if let Some(descriptor) = answer.descriptor {
            // One that came meanwhile is as good.
            let _ = session.writing.set(Writing::new(descriptor));
        }
        let fits = span.len == bytes as u64
            && span
                .offset
                .checked_add(span.len)
                .is_some_and(|end| session.mapping.as_ref().is_some_and(|mapping| mapping.holds(&(span.offset..end))));
        let written = match session.writing.get() {
            Some(writing) if fits => writing.write(span.offset, block),
            _ => Err(std::io::ErrorKind::InvalidData.into()),
        };
        if let Err(error) = written {
            tracing::debug!(worker = %worker.id, %error, "block not written in place");
            session.outbox.unpin(pin);
            return None;
        }
        match NodeReply::decode(&ask(NodeOp::Written { pin }).await.ok()?.ok()?.meta) {
            Ok(NodeReply::Block(block)) => {
                self.shared.counters.written();
                Some(block)
            }
            _ => None,
        }
    }
}
