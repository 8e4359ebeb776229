//! An object that is written beside its place, where nobody sees it, and takes that place when it is whole.

use std::time::Duration;

use bytes::Bytes;
use forebay_nodes::{Condition, CreateOptions, NodeError, NodeErrorKind, NodeResult, NodeType};
use forebay_runtime::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::nodes::{NodeWriter, Nodes};

/// What a process that died has left of an object goes after this time.
const DRAFT_LEASE: Duration = Duration::from_secs(3600);

/// A file or value that is written beside its place, where listings don't show it, and takes that place in one step when it is whole. One that
/// is dropped before is removed.
pub struct NodeDraft {
    nodes: Nodes,
    kind: NodeType,
    /// Where it is until it is whole.
    path: String,
    /// What it is to be called in its container.
    name: String,
    writer: Option<NodeWriter>,
    /// Nothing is left of it under its first name.
    is_over: bool,
    /// Its lease lasts as long as it does, however seldom it is written.
    _renewing: AbortOnDropHandle<()>,
}

impl Nodes {
    /// Begins an object of this path, in a container that is there: a file, or a value. `WrongType` where the container does not hold such.
    pub async fn draft(&self, path: &str, kind: NodeType) -> NodeResult<NodeDraft> {
        assert!(!kind.is_container(), "{path}: a {kind} is filled where it is to be");
        let (folder, name) = path.rsplit_once('/').unwrap_or((path, ""));
        let beside = format!("{folder}/.upload-{:032x}", forebay_runtime::random::<u128>());
        let renewing = AbortOnDropHandle::new(forebay_runtime::spawn(renew(self.clone(), beside.clone())));
        let (nodes, name) = (self.clone(), name.to_string());
        // Before the node: nothing is left of one that nobody waits for any more.
        let path = beside.clone();
        let draft = NodeDraft { nodes, kind, path, name, writer: None, is_over: false, _renewing: renewing };
        let made = async {
            self.create(&beside, CreateOptions { enumerable: false, ..CreateOptions::new(kind) }).await?;
            self.lease(&beside, Some(DRAFT_LEASE)).await
        };
        made.await.map_err(|error| draft.named(error))?;
        Ok(draft)
    }
}

impl NodeDraft {
    /// Adds bytes to a file; of a value these are all of it.
    pub async fn write(&mut self, bytes: Bytes) -> NodeResult<()> {
        assert!(!self.is_over, "{}: what has taken its place is not written on", self.path);
        let written = self.add(bytes).await;
        written.map_err(|error| self.named(error))
    }

    async fn add(&mut self, bytes: Bytes) -> NodeResult<()> {
        if self.kind == NodeType::KeyValue {
            return self.nodes.put(&self.path, bytes).await;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.nodes.writer(&self.path).await?),
        };
        writer.write_bytes(bytes).await
    }

    /// What was written is kept from here on for however long no more comes. To be called before pauses of minutes.
    pub async fn settle(&mut self) -> NodeResult<()> {
        let settled = if let Some(writer) = &mut self.writer { writer.settle().await } else { Ok(()) };
        settled.map_err(|error| self.named(error))
    }

    /// Nothing more is written: its bytes and their [tag](crate::NodeSnapshot::tag), whoever writes to its place next.
    pub async fn finish(&mut self) -> NodeResult<(u64, u128)> {
        if let Some(writer) = self.writer.take() {
            writer.finish().await.map_err(|error| self.named(error))?;
        }
        let snapshot = self.nodes.snapshot(&self.path).await.map_err(|error| self.named(error))?;
        Ok((snapshot.len(), snapshot.tag()))
    }

    /// Takes its place, if a condition is true of what is there: [`Nodes::replace`]. `DataLost` where nobody knows whether it did.
    pub async fn take_place(&mut self, condition: Condition) -> NodeResult<()> {
        assert!(!self.is_over && self.writer.is_none(), "{}: what takes a place is whole, and does so once", self.path);
        self.nodes.replace(&self.path, &self.name, condition).await.map_err(|error| self.named(error))?;
        self.is_over = true;
        Ok(())
    }

    /// An error of it as one of its place.
    fn named(&self, error: NodeError) -> NodeError {
        renamed(&self.path, &self.name, error)
    }

    /// Removes it. What can't be removed goes by its lease.
    pub async fn discard(mut self) {
        self.writer = None;
        if !std::mem::replace(&mut self.is_over, true) {
            remove(&self.nodes, &self.path).await;
        }
    }
}

/// Renews the lease of what is beside, for as long as this runs.
async fn renew(nodes: Nodes, path: String) {
    loop {
        sleep(DRAFT_LEASE / 4).await;
        if let Err(error) = nodes.lease(&path, Some(DRAFT_LEASE)).await {
            tracing::debug!(%error, "the lease of what is written of an object is not renewed");
        }
    }
}

/// An error of what is beside as one of what it is to be.
fn renamed(beside: &str, name: &str, error: NodeError) -> NodeError {
    let own = beside.rsplit('/').next().unwrap_or(beside);
    NodeError { message: error.message.replace(own, name), ..error }
}

async fn remove(nodes: &Nodes, path: &str) {
    if let Err(error) = nodes.delete(path, false).await
        && error.kind != NodeErrorKind::NotFound
    {
        tracing::debug!(%error, "what was written of an object stays for an hour");
    }
}

impl Drop for NodeDraft {
    fn drop(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let (nodes, path) = (self.nodes.clone(), std::mem::take(&mut self.path));
        forebay_runtime::spawn_left(async move { remove(&nodes, &path).await });
    }
}
