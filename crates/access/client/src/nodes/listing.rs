//! The names in a container.

use forebay_nodes::{NodeResult, NodeType};
use forebay_protocol::{NodeOp, NodeReply};
use futures::Stream;

use super::Nodes;
use super::call::misfit;

/// Entries of one answer.
const PAGE: u32 = 10_000;

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// The node's name in its container.
    pub name: String,
    /// Its type.
    pub kind: NodeType,
    /// Bytes of a file or value; 0 of a container.
    pub bytes: u64,
}

impl Nodes {
    /// Up to `limit` (10,000 at most) enumerable nodes of a container after a name, in byte order of their names; and whether
    /// there are no more.
    pub async fn list(&self, path: &str, after: Option<&str>, limit: u32) -> NodeResult<(Vec<NodeEntry>, bool)> {
        let mut page = Vec::new();
        let last =
            self.list_into(path, after, limit, |name, kind, bytes| page.push(NodeEntry { name: name.to_string(), kind, bytes }));
        let last = last.await?;
        Ok((page, last))
    }

    /// The same without an allocation an entry: each is handed to `each`.
    pub async fn list_into(
        &self,
        path: &str,
        after: Option<&str>,
        limit: u32,
        mut each: impl FnMut(&str, NodeType, u64),
    ) -> NodeResult<bool> {
        let answer = self.call(path, &NodeOp::List { after, limit: limit.clamp(1, PAGE) }).await?;
        match answer.reply()? {
            NodeReply::Listed { entries, last } => {
                entries.into_iter().for_each(|(name, kind, bytes)| each(name, kind, bytes));
                Ok(last)
            }
            _ => Err(misfit()),
        }
    }

    /// All enumerable nodes of a container, page by page, in byte order of their names. Nodes that come and go meanwhile may
    /// be in it or not; all others are, once.
    pub fn enumerate(&self, path: &str) -> impl Stream<Item = NodeResult<Vec<NodeEntry>>> + Send + use<> {
        let (nodes, path) = (self.clone(), path.to_string());
        futures::stream::try_unfold(Some(None::<String>), move |state| {
            let (nodes, path) = (nodes.clone(), path.clone());
            async move {
                let Some(after) = state else { return Ok(None) };
                let (page, last) = nodes.list(&path, after.as_deref(), PAGE).await?;
                let next = if last { None } else { page.last().map(|entry| Some(entry.name.clone())) };
                Ok(Some((page, next)))
            }
        })
    }
}
