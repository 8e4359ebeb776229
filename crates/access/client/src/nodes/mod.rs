//! The way into the temporary namespace: paths below `/tmp`, typed nodes, bytes.
//!
//! Owns: what is remembered of the paths of containers and of workers without room, and all operations on nodes.
//!
//! Never does: keep bytes or names, which workers do, or do twice what changes something.
//!
//! Start with [`Nodes`]. `call` finds the worker that has a path's container (one round trip when the path is remembered, `paths`); `read` and
//! `write` move bytes of files, bags and large values straight from and to the workers that have them. `objects` is what they are to who knows
//! objects alone.

mod batch;
mod beside;
mod call;
mod files;
mod listing;
mod many;
mod objects;
mod offer;
mod paths;
mod pieces;
mod read;
mod snapshot;
mod values;
mod write;

use std::sync::Arc;
use std::time::Duration;

use forebay_nodes::{
    Condition, CreateOptions, Location, NodeError, NodeErrorKind, NodeResult, Slots, Stat, StorageClass, Usage, is_inside, split,
};
use forebay_protocol::{NodeOp, NodeReply};
use parking_lot::Mutex;

use crate::counters::Counters;
use crate::route::Routes;
use offer::FullWorkers;
use paths::Paths;

pub use listing::NodeEntry;
pub use objects::{NODE_VALUE_BYTES_MAX, NodeDraft, NodeItem, NodeWalk, node_etag, node_tag};
pub use pieces::NodeBlock;
pub use read::NodeReader;
pub use snapshot::{NodeSnapshot, value_tag};
pub use write::NodeWriter;

/// Temporary nodes of a cluster, by their paths below `/tmp`. Cheap to clone.
///
/// Every operation is one round trip to one worker, but for bytes of files and large values on other workers. Errors are
/// [`forebay_nodes::NodeError`]; `DataLost` says that the cluster has lost the worker that had the node. One that it has not lost and that
/// can't be reached is asked for 30 s, and then it is `Retry`.
///
/// ```
/// use forebay_client::{CreateOptions, NodeType};
///
/// # #[tokio::main]
/// # async fn main() -> forebay_client::NodeResult<()> {
/// # let cluster = forebay_testbed::TestCluster::start(1).await;
/// # let client = cluster.client(|_| {}).await;
/// let nodes = client.nodes();
/// nodes.create("/tmp/job", CreateOptions::new(NodeType::Directory)).await?;
/// nodes.put("/tmp/job/state", "mapped").await?;
/// assert_eq!(nodes.get("/tmp/job/state").await?, "mapped");
/// nodes.create("/tmp/job/log", CreateOptions::new(NodeType::File)).await?;
/// assert_eq!(nodes.append("/tmp/job/log", "begun").await?, 5);
/// let (entries, is_all) = nodes.list("/tmp/job", None, 100).await?;
/// assert_eq!((entries[0].name.as_str(), entries[1].name.as_str(), is_all), ("log", "state", true));
/// nodes.delete("/tmp/job", true).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Nodes {
    shared: Arc<Shared>,
}

/// Where bytes of a node are to lie, as far as who writes them says so: all else is as the node has it, or its container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePlace {
    /// In which tiers.
    pub class: Option<StorageClass>,
    /// With which workers, as long as one of them has room.
    pub location: Option<Location>,
}

impl NodePlace {
    /// Whether nothing is said.
    pub fn is_open(&self) -> bool {
        self.class.is_none() && self.location.is_none()
    }

    /// Whether a node is there already.
    fn holds(&self, stat: &Stat) -> bool {
        self.class.is_none_or(|class| class == stat.class)
            && self.location.as_ref().is_none_or(|location| *location == stat.location)
    }
}

/// What all clones share.
struct Shared {
    routes: Arc<Routes>,
    counters: Arc<Counters>,
    paths: Paths,
    full_workers: FullWorkers,
    /// Numbers for calls that take effect once.
    slots: Mutex<Slots>,
}

impl Nodes {
    pub(crate) fn new(routes: Arc<Routes>, counters: Arc<Counters>) -> Self {
        let (paths, full_workers) = (Paths::default(), FullWorkers::new());
        let slots = Mutex::new(Slots::new(forebay_runtime::random()));
        Self { shared: Arc::new(Shared { routes, counters, paths, full_workers, slots }) }
    }

    /// Makes an empty node. `Exists` when the name is taken, unless both are key-values.
    pub async fn create(&self, path: &str, options: CreateOptions) -> NodeResult<()> {
        let CreateOptions { kind, enumerable, class, location } = options;
        self.call(path, &NodeOp::Create { kind, enumerable, class, location }).await?.done()
    }

    /// What a node is; none when there is none.
    pub async fn stat(&self, path: &str) -> NodeResult<Option<Stat>> {
        if split(path)?.is_empty() {
            return Ok(Some(Stat::of_root()));
        }
        use forebay_nodes::NodeErrorKind::{NotContainer, NotFound};
        match self.call(path, &NodeOp::Stat).await {
            Ok(answer) => match answer.reply()? {
                NodeReply::Stat(stat) => Ok(stat),
                _ => Err(call::misfit()),
            },
            Err(error) if matches!(error.kind, NotFound | NotContainer) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes a node. A container with nodes only when `recursive`, else `NotEmpty`.
    pub async fn delete(&self, path: &str, recursive: bool) -> NodeResult<()> {
        self.call(path, &NodeOp::Delete { recursive }).await?.done()
    }

    /// Renames a node: a key-value replaces a key-value, an existing container takes it in under its own name.
    pub async fn rename(&self, path: &str, to: &str) -> NodeResult<()> {
        let (from, new) = (split(path)?, split(to)?);
        let own = from.rsplit('/').next().unwrap_or(from);
        let refused = |kind, message: String| Err(NodeError::new(kind, format!("{path}: {message}")));
        let inside = is_inside(new, from);
        if inside && let Some(stat) = self.stat(path).await?.filter(|stat| !stat.kind.is_container()) {
            // Of a container it is an error, as every place in itself is.
            return match from == new {
                true => Ok(()),
                false => refused(NodeErrorKind::NotContainer, format!("{own:?} is a {}, which holds no nodes", stat.kind)),
            };
        }
        let (name, dir) = match new.rsplit_once('/') {
            _ if inside => ("-", forebay_nodes::ROOT),
            // Into /tmp itself, where a container of its name does not take it in.
            None if new.is_empty() => match self.stat(&format!("/tmp/{own}")).await? {
                Some(_) if from == own => return Ok(()),
                Some(stat) if stat.kind.is_container() => {
                    return refused(
                        NodeErrorKind::Exists,
                        format!("{own:?} exists already and is a {}: delete it first", stat.kind),
                    );
                }
                _ => (own, forebay_nodes::ROOT),
            },
            None => (new, forebay_nodes::ROOT),
            Some((_, name)) => match self.call(to, &NodeOp::Parent).await?.reply()? {
                NodeReply::Dir(dir) => (name, dir),
                _ => return Err(call::misfit()),
            },
        };
        self.call(path, &NodeOp::Rename { dir, name, inside }).await?.done()
    }

    /// A file or value takes the place of the one of another name in its container, in one step; listings show it from then on, and
    /// it has no lease. `Exists` when there is one that the condition is not true of, `NotFound` when there is none and should be.
    pub async fn replace(&self, path: &str, name: &str, condition: Condition) -> NodeResult<()> {
        self.call(path, &NodeOp::Replace { name, condition }).await?.done()
    }

    /// Deletes a file or value that a condition is true of, as [`Self::replace`] looks at it.
    pub async fn delete_if(&self, path: &str, condition: Condition) -> NodeResult<()> {
        self.call(path, &NodeOp::DeleteIf { condition }).await?.done()
    }

    /// From now on the files and values in a container, and in containers in it, may have so many bytes at most: what is more is refused (`NoSpace`). None: as many
    /// as there is room for. `Invalid` of a container that holds containers which are with other workers.
    pub async fn set_quota(&self, path: &str, bytes: Option<u64>) -> NodeResult<()> {
        self.call(path, &NodeOp::SetQuota { bytes }).await?.done()
    }

    /// What the files and values in a container have, and may have.
    pub async fn usage(&self, path: &str) -> NodeResult<Usage> {
        match self.call(path, &NodeOp::Usage).await?.reply()? {
            NodeReply::Usage(usage) => Ok(usage),
            _ => Err(call::misfit()),
        }
    }

    /// The node goes away, with all that is in it, unless this is called again within `ttl`. None: it stays.
    pub async fn lease(&self, path: &str, ttl: Option<Duration>) -> NodeResult<()> {
        let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        self.call(path, &NodeOp::Lease { ttl_ms }).await?.done()
    }
}
