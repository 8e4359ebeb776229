//! A worker that was lost to all others: what it had can't be named any more, and must not be found by those who remember the way.

use crate::namespace::{Namespace, TableState};
use crate::node::Node;
use crate::operations::Removed;
use crate::terms::BlockRef;

impl Namespace {
    /// Everything goes. With it come the blocks of nodes that were on their way between this worker and another one, which may have
    /// them by now: they are to be given back only when no node anywhere has them.
    pub fn lose_all(&mut self) -> (Removed, Vec<BlockRef>) {
        let (mut removed, mut doubtful) = (Removed::default(), Vec::new());
        for (id, table) in &self.tables {
            let is_still = table.state == TableState::Open && !self.coming.contains_key(id);
            for node in table.nodes.values() {
                match node {
                    node if !is_still || node.flags().is_moving() => doubtful.extend(node.blocks()),
                    Node::Container(_, link) if link.1.worker != self.worker() => removed.elsewhere.push(link.1),
                    node => removed.blocks.extend(node.blocks()),
                }
            }
        }
        doubtful.extend(self.arriving.values().flat_map(|arriving| arriving.node.blocks()));
        self.whole(Self::step_clear);
        (removed, doubtful)
    }
}
