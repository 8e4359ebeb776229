use serde::{Deserialize, Serialize};

use crate::create::check_still;
use crate::file::File;
use crate::node::{Flags, Node};
use crate::{BlockRef, DirId, Location, Namespace, NodeError, NodeErrorKind, NodeResult, NodeType, ROOT, check_name};

/// Where a rename puts a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// In this container, under this name.
    Here(DirId, &'a str),
    /// In a container whose nodes are elsewhere, under the source's own name.
    Into(DirId),
}

/// A node on its way between two workers, with all that it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moving {
    flags: Flags,
    location: Location,
    body: Body,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Body {
    Small(Box<[u8]>),
    Large(Box<[BlockRef]>),
    File(Box<File>),
    Container(NodeType, DirId),
}

/// A node that another worker is about to give up.
#[derive(Debug)]
pub(crate) struct Arriving {
    rename: u128,
    source: u64,
    pub(crate) node: Node,
}

impl Moving {
    pub(crate) fn of(node: &Node, location: Location) -> Self {
        let body = match node {
            Node::Small(_, bytes) => Body::Small(bytes.clone()),
            Node::Large(_, blocks) => Body::Large(blocks.clone()),
            Node::File(_, file) => Body::File(file.clone()),
            Node::Container(_, link) => Body::Container(link.0, link.1),
        };
        Self { flags: node.flags(), location, body }
    }

    /// Where its blocks are to lie.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// The node, without its lease and writer, with the number that its location has where it comes.
    pub(crate) fn into_node(self, label: u16) -> Node {
        let mut flags = self.flags;
        flags.set_leased(false);
        flags.set_label(label);
        match self.body {
            Body::Small(bytes) => Node::Small(flags, bytes),
            Body::Large(blocks) => Node::Large(flags, blocks),
            Body::File(mut file) => {
                file.set_writer(None);
                Node::File(flags, file)
            }
            Body::Container(kind, id) => Node::Container(flags, Box::new((kind, id))),
        }
    }

    /// The node's type.
    pub fn kind(&self) -> NodeType {
        match &self.body {
            Body::Small(_) | Body::Large(_) => NodeType::KeyValue,
            Body::File(_) => NodeType::File,
            Body::Container(kind, _) => *kind,
        }
    }
}

impl Namespace {
    /// Renames a node within this part: in one step, or not at all. A key-value replaces a key-value; an existing container
    /// takes the node in under its own name; everything else that is there is `Exists`. That a container does not come into
    /// itself is for the caller to see, who knows the paths.
    pub fn rename(&mut self, from: (DirId, &str), to: (DirId, &str)) -> NodeResult<()> {
        let kind = self.movable(from.0, from.1)?.kind();
        if from == to && !kind.is_container() {
            return Ok(());
        }
        match self.target(from.1, to.0, to.1)? {
            Target::Into(_) => Err(NodeError::new(NodeErrorKind::Invalid, "the target is with another worker")),
            Target::Here(dir, name) if (dir, name) == from => Ok(()),
            Target::Here(dir, name) => {
                self.check_arrival(kind, dir, name)?;
                if self.inside(from, dir) {
                    return Err(NodeError::new(NodeErrorKind::Invalid, format!("{:?} can't be moved into itself", from.1)));
                }
                let lease = self.leases.get(&(from.0, from.1.into())).copied();
                let node = self.take(from.0, from.1)?;
                if let Node::Container(_, link) = &node {
                    self.set_parent(link.1, dir)?;
                }
                self.insert(dir, name, node)?;
                if let Some(until) = lease {
                    self.leases.insert((dir, name.into()), until);
                }
                Ok(())
            }
        }
    }

    /// Where a node of that name comes when it is renamed to `name` in `dir`.
    pub fn target<'a>(&self, source: &'a str, dir: DirId, name: &'a str) -> NodeResult<Target<'a>> {
        match self.table(dir)?.find(name) {
            Some(Node::Container(_, link)) if self.has(link.1) => Ok(Target::Here(link.1, source)),
            Some(Node::Container(_, link)) => Ok(Target::Into(link.1)),
            _ => Ok(Target::Here(dir, name)),
        }
    }

    /// Source, first step: the node as it is; nobody changes it until [`Self::commit_move`] or [`Self::abort_move`].
    pub fn begin_move(&mut self, dir: DirId, name: &str) -> NodeResult<Moving> {
        let node = self.movable(dir, name)?;
        let moving = Moving::of(node, self.location(node));
        self.node_mut(dir, name)?.flags_mut().set_moving(true);
        Ok(moving)
    }

    /// Source, last step: the node is gone from here; its blocks and nodes are the target's.
    pub fn commit_move(&mut self, dir: DirId, name: &str) -> NodeResult<()> {
        self.take(dir, name).map(drop)
    }

    /// Source: the node stays.
    pub fn abort_move(&mut self, dir: DirId, name: &str) {
        if let Ok(node) = self.node_mut(dir, name) {
            node.flags_mut().set_moving(false);
        }
    }

    /// Target, first step: the place is taken, unseen, until [`Self::settle`].
    pub fn arrive(&mut self, rename: u128, source: u64, dir: DirId, name: &str, moving: Moving) -> NodeResult<()> {
        self.check_arrival(moving.kind(), dir, name)?;
        // Lease and writer stay behind: the target's clock is another one.
        let label = self.label(moving.location())?;
        let node = moving.into_node(label);
        self.check_room(Self::size(name, &node))?;
        self.arriving.insert((dir, name.into()), Arriving { rename, source, node });
        Ok(())
    }

    /// Target, last step: the node is here now, or never was. Gives a container that came, and in what, which its own worker
    /// is to be told ([`Self::set_parent`]). Nothing happens when there is no such rename (any more).
    pub fn settle(&mut self, rename: u128, committed: bool) -> Option<(DirId, DirId)> {
        let place = self.arriving.iter().find(|(_, arriving)| arriving.rename == rename).map(|(place, _)| place.clone())?;
        let node = self.arriving.remove(&place)?.node;
        if !committed {
            // Its blocks are those of the node that stays at the source.
            return None;
        }
        if !self.has(place.0) {
            // Its container was deleted recursively meanwhile, and it with it: nobody has its blocks any more.
            self.free(node.into_blocks());
            return None;
        }
        let id = node.container();
        self.place(place.0, &place.1, node);
        id.map(|id| (id, place.0))
    }

    /// The renames whose end this target does not know yet, with the workers that know it.
    pub fn unsettled(&self) -> Vec<(u128, u64)> {
        self.arriving.values().map(|arriving| (arriving.rename, arriving.source)).collect()
    }

    /// `Retry` while a node is on its way to this place.
    pub(crate) fn check_free(&self, dir: DirId, name: &str) -> NodeResult<()> {
        if !self.arriving.is_empty() && self.arriving.contains_key(&(dir, name.into())) {
            return Err(NodeError::new(NodeErrorKind::Retry, format!("{name:?} is being renamed to: try again")));
        }
        Ok(())
    }

    pub(crate) fn movable(&self, dir: DirId, name: &str) -> NodeResult<&Node> {
        let node = self.open_table(dir)?.find(name).ok_or_else(|| NodeError::not_found(name))?;
        check_still(name, node)?;
        Ok(node)
    }

    fn check_arrival(&self, kind: NodeType, dir: DirId, name: &str) -> NodeResult<()> {
        check_name(name)?;
        let table = self.open_table(dir)?;
        table.check_holds(kind)?;
        self.check_free(dir, name)?;
        match table.find(name) {
            Some(old) if kind == NodeType::KeyValue && old.kind() == NodeType::KeyValue => check_still(name, old),
            Some(old) => Err(NodeError::new(
                NodeErrorKind::Exists,
                format!("{name:?} exists already and is a {}: delete it first", old.kind()),
            )),
            None => Ok(()),
        }
    }

    /// Whether `dir` is the container of that name or in it, as far as this part knows.
    fn inside(&self, outer: (DirId, &str), dir: DirId) -> bool {
        let Some(Node::Container(_, link)) = self.table(outer.0).ok().and_then(|table| table.find(outer.1)) else { return false };
        self.is_below(dir, link.1)
    }

    /// Whether `dir` is `outer` or below it, as far as this part knows.
    fn is_below(&self, dir: DirId, outer: DirId) -> bool {
        let mut at = dir;
        // Each container of this part at most once. Parents that are elsewhere end the way up.
        for _ in 0..=self.tables.len() {
            if at == outer {
                return true;
            }
            match self.tables.get(&at) {
                Some(table) if at != ROOT => at = table.parent,
                _ => return false,
            }
        }
        // A circle, which [`Self::set_parent`] lets nobody make: nothing comes into it.
        true
    }

    /// A container's name is in `parent` now. To be told to where it moved when it is not here any more ([`Self::moved_to`]).
    /// `Invalid` when it would come to lie in itself.
    pub fn set_parent(&mut self, id: DirId, parent: DirId) -> NodeResult<()> {
        if !self.tables.contains_key(&id) {
            return Ok(());
        }
        if id == ROOT || self.is_below(parent, id) {
            return Err(NodeError::new(NodeErrorKind::Invalid, "a container can't be moved into itself"));
        }
        if let Some(table) = self.tables.get_mut(&id) {
            table.parent = parent;
        }
        Ok(())
    }
}
