//! The side that gives a container up.

use std::ops::Bound;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::namespace::{Namespace, Table, TableState};
use crate::node::{Moving, Node};
use crate::terms::{Affinity, DirId, NodeError, NodeErrorKind, NodeResult, NodeType, ROOT};

/// A container on its way to another worker, without its nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carton {
    /// What it was until now.
    pub old: DirId,
    /// Its type.
    pub kind: NodeType,
    /// Where blocks of its nodes are to lie.
    pub affinity: Affinity,
    /// The container that it is in.
    pub parent: DirId,
    /// What is in it may have at most; said behind it, where there is one: earlier versions don't know it.
    #[serde(skip)]
    pub quota: Option<u64>,
}

/// A node of such a container. Times are what is left of them: the target's clock is another one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Packed {
    pub(crate) name: Box<str>,
    pub(crate) node: Moving,
    /// Of its lease.
    pub(crate) lease: Option<Duration>,
    /// Who writes to the file, and how long nobody else may.
    pub(crate) writer: Option<(u64, Duration)>,
}

impl Packed {
    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The side that gives a container up. Each step but the commit can be taken back; readers see it whole at every moment.
impl Namespace {
    /// The containers here that are nowhere on their way, and the memory that the nodes of each take. O(nodes).
    pub fn containers(&self) -> Vec<(DirId, u64)> {
        let here = self.tables.iter().filter(|(id, _)| !self.coming.contains_key(*id));
        here.map(|(id, table)| (*id, table.nodes.iter().map(|(name, node)| Self::size(name, node)).sum())).collect()
    }

    /// First step: nobody changes the container's nodes until [`Self::commit_handover`] or [`Self::abort_handover`]. `Retry`
    /// while one of them is being renamed, and of one that a quota ties to others ([`Self::is_tied`]).
    pub fn begin_handover(&mut self, id: DirId) -> NodeResult<Carton> {
        let table = self.open_table(id)?;
        if self.is_tied(id) {
            let message = "containers below a quota stay with one worker, which counts them: lift the quota, or delete them";
            return Err(NodeError::new(NodeErrorKind::Retry, message));
        }
        let is_busy = self.coming.contains_key(&id)
            || self.arriving.keys().any(|(dir, _)| *dir == id)
            || table.nodes.values().any(|node| node.flags().is_moving());
        if is_busy {
            return Err(NodeError::new(NodeErrorKind::Retry, "a node of the container is being renamed: try again"));
        }
        let Table { kind, parent, quota, .. } = *table;
        let carton = Carton { old: id, kind, affinity: table.affinity.clone(), parent, quota };
        self.whole(|names| names.step_state(id, TableState::Frozen));
        Ok(carton)
    }

    /// The nodes after a name, as many as take `bytes_max` or one; and whether there are no more.
    pub fn pack(&self, id: DirId, after: Option<&str>, bytes_max: u64, now: Duration) -> NodeResult<(Vec<Packed>, bool)> {
        let table = self.table(id)?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut packed, mut bytes) = (Vec::new(), 0);
        for (name, node) in table.nodes.range::<str, _>((from, Bound::Unbounded)) {
            if bytes >= bytes_max {
                return Ok((packed, false));
            }
            bytes += Self::size(name, node);
            let until = node.flags().is_leased().then(|| self.leases.get(&(id, name.clone()))).flatten();
            let writer = if let Node::File(_, file) = node { file.writer } else { None };
            packed.push(Packed {
                name: name.clone(),
                node: Moving::of(node, self.location(node)),
                lease: until.map(|until| until.saturating_sub(now)),
                writer: writer.map(|(writer, until)| (writer, until.saturating_sub(now))),
            });
        }
        Ok((packed, true))
    }

    /// Nobody sees the container's nodes any more either. For the root, which others give to the target.
    pub fn seal(&mut self, id: DirId) {
        self.whole(|names| names.step_state(id, TableState::Sealed));
    }

    /// Last step: the container is the target's, under another identity. Its blocks stay what they are. Gives the container
    /// that its name is in now.
    pub fn commit_handover(&mut self, id: DirId, to: DirId) -> Option<DirId> {
        let parent = self.tables.get(&id)?.parent;
        self.whole(|names| {
            names.drop_table(id);
            if id != ROOT {
                names.step_moved_to(id, to);
            }
        });
        Some(parent)
    }

    /// The container stays.
    pub fn abort_handover(&mut self, id: DirId) {
        self.whole(|names| names.step_state(id, TableState::Open));
    }

    /// What a container is now that was here.
    pub fn moved_to(&self, id: DirId) -> Option<DirId> {
        self.moved.get(&id).copied()
    }
}
