//! A node that a rename takes to another worker: the source keeps it until the target has its place.

use crate::namespace::{Arriving, Namespace};
use crate::node::Moving;
use crate::terms::{DirId, NodeResult};

impl Namespace {
    /// Source, first step: the node as it is; nobody changes it until [`Self::commit_move`] or [`Self::abort_move`].
    pub fn begin_move(&mut self, dir: DirId, name: &str) -> NodeResult<Moving> {
        let node = self.movable(dir, name)?;
        let moving = Moving::of(node, self.location(node));
        self.set_moving(dir, name, true)?;
        Ok(moving)
    }

    /// Source, last step: the node is gone from here; its blocks and nodes are the target's.
    pub fn commit_move(&mut self, dir: DirId, name: &str) -> NodeResult<()> {
        self.whole(|names| names.take(dir, name)).map(drop)
    }

    /// Source: the node stays.
    pub fn abort_move(&mut self, dir: DirId, name: &str) {
        // Nothing is there to stay when this fails.
        let _ = self.set_moving(dir, name, false);
    }

    fn set_moving(&mut self, dir: DirId, name: &str, is_moving: bool) -> NodeResult<()> {
        let mut flags = self.node(dir, name)?.flags();
        flags.set_moving(is_moving);
        self.whole(|names| names.step_flags(dir, name, flags));
        Ok(())
    }

    /// Target, first step: the place is taken, unseen, until [`Self::settle`].
    pub fn arrive(&mut self, rename: u128, source: u64, dir: DirId, name: &str, moving: Moving) -> NodeResult<()> {
        self.check_arrival(moving.kind(), dir, name)?;
        // Lease and writer stay behind: the target's clock is another one.
        let label = self.label(&moving.location)?;
        let node = moving.into_node(label);
        let from = node.container().and_then(|id| self.links.get(&id)).map(|(from, _)| *from);
        self.check_comes(dir, name, (node.len(), node.container()), from)?;
        self.check_room(Self::size(name, &node))?;
        self.whole(|names| names.step_arriving(dir, name, Some(Arriving { rename, source, node })));
        Ok(())
    }

    /// Target, last step: the node is here now, or never was. Gives a container that came, and in what, which its own worker
    /// is to be told ([`Self::set_parent`]). Nothing happens when there is no such rename (any more).
    pub fn settle(&mut self, rename: u128, committed: bool) -> Option<(DirId, DirId)> {
        let place = self.arriving.iter().find(|(_, arriving)| arriving.rename == rename).map(|(place, _)| place.clone())?;
        let node = &self.arriving.get(&place)?.node;
        let (id, blocks) = (node.container(), node.blocks());
        self.whole(|names| {
            if committed && names.has(place.0) {
                names.let_in(&place);
                return id.map(|id| (id, place.0));
            }
            names.step_arriving(place.0, &place.1, None);
            // Without a commit the node stays at the source, with its blocks. With a commit its new container was deleted
            // recursively meanwhile, and the node with it: nobody has its blocks any more.
            if committed {
                names.step_freed(blocks);
            }
            None
        })
    }

    /// The renames whose end this target does not know yet, with the workers that know it.
    pub fn unsettled(&self) -> Vec<(u128, u64)> {
        self.arriving.values().map(|arriving| (arriving.rename, arriving.source)).collect()
    }
}
