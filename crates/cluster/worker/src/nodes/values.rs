//! Values, and how answers carry them.

use bytes::Bytes;
use forebay_nodes::{BlockRef, Got, INLINE_BYTES_MAX, NodeError, NodeErrorKind, NodeResult, Value};
use forebay_protocol::{NODE_MESSAGE_VALUE_MAX, NodeReply, Raw};
use forebay_transport::Response;
use futures::future::try_join_all;

use super::Nodes;
use super::fence::{Answer, Reached};
use crate::in_place::SessionPins;

/// Longer answers are told where the bytes are.
pub(super) const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// How often a reader looks again for blocks that were given back under it.
pub(super) const LOOKS: usize = 8;

/// What a key-value's value is found to be.
enum Looked {
    /// It lies beside its name.
    Beside(Response),
    Blocks(Vec<BlockRef>),
}

impl Nodes {
    /// Puts a value, the message's or the payload.
    pub(super) async fn put(&self, at: Reached, name: &str, value: &[u8], payload: Bytes) -> NodeResult<Response> {
        let bytes = if payload.is_empty() { value } else { &payload[..] };
        if bytes.len() > INLINE_BYTES_MAX {
            return Box::pin(self.put_long(at, name, bytes)).await;
        }
        let value: Box<[u8]> = if payload.is_empty() { value.into() } else { Vec::from(payload).into() };
        self.put_value(at, name, Value::Inline(value))
    }

    async fn put_long(&self, at: Reached, name: &str, bytes: &[u8]) -> NodeResult<Response> {
        let affinity = self.reached(at)?.check_put(at.dir, name)?;
        let blocks = self.write_blocks((at.dir, name), &affinity, &[bytes]).await?;
        self.put_value(at, name, Value::Blocks(blocks.clone().into())).inspect_err(|error| {
            if error.kind == NodeErrorKind::Moving {
                self.free_later(blocks.clone());
            }
        })
    }

    /// Puts a value of blocks that a client has brought.
    pub(super) async fn put_blocks(&self, at: Reached, name: &str, blocks: &[BlockRef]) -> NodeResult<Response> {
        let taken = match self.take_brought(blocks).await {
            Ok(taken) => taken,
            Err(error) => {
                // Asked once more, since the answer was lost.
                let names = self.reached(at)?;
                let has = |blocks: &[BlockRef]| matches!(names.get(at.dir, name), Ok(Got::Blocks(has)) if *has == *blocks);
                let len = blocks.iter().map(|block| u64::from(block.len)).sum();
                return if has(blocks) { Ok(reply(&NodeReply::Length(len))) } else { Err(error) };
            }
        };
        let (put, freed) = match self.changing(at) {
            Ok(mut names) => (names.put(at.dir, name, Value::Blocks(blocks.into())), names.take_freed()),
            Err(error) => (Err(error), Vec::new()),
        };
        self.free_later(freed);
        match put {
            Ok(_) => taken.claim(),
            Err(ref error) if error.kind == NodeErrorKind::Moving => taken.release().await,
            Err(_) => taken.give_back(),
        }
        put.map(|len| reply(&NodeReply::Length(len)))
    }

    /// Puts a value that is where it is to lie. Its blocks go when it can't be put, but for `Moving`: who asked asks again.
    pub(super) fn put_value(&self, at: Reached, name: &str, value: Value) -> NodeResult<Response> {
        let blocks = match &value {
            Value::Inline(_) => Vec::new(),
            Value::Blocks(blocks) => blocks.to_vec(),
        };
        let (put, freed) = match self.changing(at) {
            Ok(mut names) => {
                #[cfg(test)]
                super::planted(name);
                let put = names.put(at.dir, name, value);
                if let Ok(len) = &put {
                    self.took_effect(&names, at, Answer::Length(*len));
                }
                (put, names.take_freed())
            }
            Err(error) => (Err(error), Vec::new()),
        };
        self.free_later(freed);
        match put {
            Ok(len) => Ok(reply(&NodeReply::Length(len))),
            Err(error) => {
                if error.kind != NodeErrorKind::Moving {
                    self.free_later(blocks);
                }
                Err(error)
            }
        }
    }

    /// A key-value's value; one of a single block in place, where that can be.
    pub(super) async fn get(&self, pins: Option<&SessionPins>, at: Reached, name: &str) -> NodeResult<Response> {
        match self.look(at, name)? {
            Looked::Beside(answer) => Ok(answer),
            Looked::Blocks(blocks) => Box::pin(self.get_blocks(pins, at, name, blocks)).await,
        }
    }

    fn look(&self, at: Reached, name: &str) -> NodeResult<Looked> {
        let names = self.reached(at)?;
        Ok(match names.get(at.dir, name)? {
            Got::Inline(bytes) => Looked::Beside(beside(bytes)),
            Got::Blocks(blocks) => Looked::Blocks(blocks.to_vec()),
        })
    }

    async fn get_blocks(
        &self,
        pins: Option<&SessionPins>,
        at: Reached,
        name: &str,
        mut blocks: Vec<BlockRef>,
    ) -> NodeResult<Response> {
        for _ in 0..LOOKS {
            if let ([block], Some(_)) = (&blocks[..], pins)
                && block.worker == self.worker
            {
                if let Some(found) = self.find_block(*block, 0, block.len).await? {
                    return Ok(found.answer(pins));
                }
            } else {
                let len = blocks.iter().map(|block| u64::from(block.len)).sum();
                if let Some(response) = self.answer_blocks(&blocks, len, 0, len, &[]).await? {
                    return Ok(response);
                }
            }
            blocks = match self.look(at, name)? {
                Looked::Beside(answer) => return Ok(answer),
                Looked::Blocks(blocks) => blocks,
            };
        }
        Err(lost(name))
    }

    /// The answer of `bytes` from `skip` bytes into the blocks on, and of the tail behind them; where they are when they
    /// are elsewhere or many. None when some block is not there any more.
    pub(super) async fn answer_blocks(
        &self,
        blocks: &[BlockRef],
        len: u64,
        skip: u64,
        bytes: u64,
        tail: &[u8],
    ) -> NodeResult<Option<Response>> {
        if bytes > ANSWER_BYTES_MAX || blocks.iter().any(|block| block.worker != self.worker) {
            return Ok(Some(reply(&NodeReply::Extents { serial: 0, len, skip, blocks: blocks.to_vec(), tail: Raw(tail) })));
        }
        let (mut skip, mut left) = (skip, bytes - tail.len() as u64);
        let reads = blocks.iter().map(|block| {
            let (start, part) = (skip, (u64::from(block.len) - skip).min(left));
            (skip, left) = (0, left - part);
            self.read_block(*block, start as u32, part as u32)
        });
        // Those on disk together.
        let read = try_join_all(reads).await?;
        let Some(mut payload) = read.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        if !tail.is_empty() {
            payload.push(Bytes::copy_from_slice(tail));
        }
        Ok(Some(with_payload(payload)))
    }
}

pub(super) fn lost(name: &str) -> NodeError {
    NodeError::new(NodeErrorKind::DataLost, format!("{name:?}: its bytes are lost with a tier: make it again"))
}

/// Of a block that is asked for by its number, by who looked up earlier what has it.
pub(super) fn gone() -> NodeError {
    NodeError::new(
        NodeErrorKind::DataLost,
        "a block is not there any more: its node was deleted, replaced or moved since it was opened, or a tier has failed: open it again",
    )
}

pub(super) fn reply(reply: &NodeReply<'_>) -> Response {
    Response::new(reply.encode())
}

/// The answer of a value that lies beside its name.
pub(super) fn beside(bytes: &[u8]) -> Response {
    match bytes.len() <= NODE_MESSAGE_VALUE_MAX {
        true => reply(&NodeReply::Bytes(Raw(bytes))),
        false => with_payload(vec![Bytes::copy_from_slice(bytes)]),
    }
}

/// The payload is the answer's bytes.
pub(super) fn with_payload(payload: Vec<Bytes>) -> Response {
    Response { meta: NodeReply::Bytes(Raw(&[])).encode(), payload, ..Response::default() }
}
