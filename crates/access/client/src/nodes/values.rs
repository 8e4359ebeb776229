//! Values under names.

use std::time::Duration;

use bytes::Bytes;
use forebay_nodes::{Condition, CreateOptions, NodeError, NodeErrorKind, NodeResult, NodeType};
use forebay_protocol::{NODE_MESSAGE_VALUE_MAX, NodeOp, NodeReply, Raw};

use super::call::misfit;
use super::{NodePlace, Nodes};

/// Values that go to their worker in one message at most; longer ones go in blocks.
const PUT_BYTES_MAX: usize = 32 << 20;
/// What a process that died has left of a value that was to lie elsewhere goes after this time.
const DRAFT_LEASE: Duration = Duration::from_secs(3600);

impl Nodes {
    /// Puts a value: readers see the old one or the new one, whole.
    pub async fn put(&self, path: &str, value: impl Into<Bytes>) -> NodeResult<()> {
        let value = value.into();
        if value.len() <= NODE_MESSAGE_VALUE_MAX {
            self.call(path, &NodeOp::Put { value: Raw(&value) }).await?.length()?;
        } else if value.len() <= PUT_BYTES_MAX && !self.goes_in_place(path, value.len()) {
            self.call_with(path, &NodeOp::Put { value: Raw(&[]) }, Some(value)).await?.length()?;
        } else {
            let brought = self.put_blocks(path, value).await?;
            self.call(path, &NodeOp::PutBlocks { blocks: brought.blocks.clone() }).await?.length()?;
            brought.taken();
        }
        Ok(())
    }

    /// Puts a value that is to lie in a place. One that is new, or lies elsewhere until now, is written beside its name and takes
    /// it in one step: here too readers see the old value or the new one, whole. Listings show it, and it has no lease.
    pub async fn put_at(&self, path: &str, value: impl Into<Bytes>, place: &NodePlace) -> NodeResult<()> {
        let value = value.into();
        let before = if place.is_open() { None } else { self.stat(path).await? };
        // What is no key-value is refused there.
        let stays = before.as_ref().is_some_and(|stat| stat.kind != NodeType::KeyValue || place.holds(stat));
        if place.is_open() || stays {
            return self.put(path, value).await;
        }
        let (container, name) = path.rsplit_once('/').unwrap_or((path, ""));
        let beside = format!(".put-{:032x}", forebay_runtime::random::<u128>());
        let draft = format!("{container}/{beside}");
        let class = place.class.or(before.as_ref().map(|stat| stat.class));
        let location = place.location.clone().or(before.map(|stat| stat.location));
        let written = async {
            self.create(&draft, CreateOptions { kind: NodeType::KeyValue, enumerable: false, class, location }).await?;
            self.lease(&draft, Some(DRAFT_LEASE)).await?;
            self.put(&draft, value).await?;
            self.replace(&draft, name, Condition::Any).await
        };
        let written = written.await;
        if written.is_err()
            && let Err(error) = self.delete(&draft, false).await
            && error.kind != NodeErrorKind::NotFound
        {
            tracing::debug!(%error, "what was written of a value stays for an hour");
        }
        written.map_err(|error| NodeError { message: error.message.replace(&beside, name), ..error })
    }

    /// A key-value's value. Small ones take one round trip; so does one of up to 1 MiB beside its worker, where it lies.
    pub async fn get(&self, path: &str) -> NodeResult<Bytes> {
        match self.get_once(path).await {
            // Its blocks may have moved since they were looked up.
            Err(error) if error.kind == NodeErrorKind::DataLost => self.get_once(path).await,
            got => got,
        }
    }

    async fn get_once(&self, path: &str) -> NodeResult<Bytes> {
        let answer = self.call(path, &NodeOp::Get).await?;
        match answer.reply()? {
            NodeReply::Bytes(Raw(&[])) => Ok(answer.payload),
            NodeReply::Bytes(Raw(value)) => Ok(answer.meta.slice_ref(value)),
            NodeReply::InPlace { pin, span } => answer.in_place(pin, span),
            NodeReply::Extents { len, skip, blocks, tail, .. } => self.gather(len, skip, &blocks, tail.0).await,
            _ => Err(misfit()),
        }
    }
}
