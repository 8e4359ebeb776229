//! The root, which one worker has: it comes to this one, or is another's from now on.

use crate::namespace::{Namespace, Table, TableState};
use crate::operations::Removed;
use crate::terms::{Affinity, NodeType, ROOT};

impl Namespace {
    /// This worker has the root from now on; nothing happens when it has it already. One that has come from another worker as
    /// a whole is taken over.
    pub fn make_root(&mut self) {
        match self.coming.get(&ROOT).map(|coming| coming.is_whole) {
            Some(true) => {
                self.coming.remove(&ROOT);
                self.set_state(ROOT, TableState::Open);
            }
            Some(false) => self.drop_takeover(ROOT),
            None => {}
        }
        self.tables.entry(ROOT).or_insert_with(|| Table::new(NodeType::Directory, Affinity::default(), ROOT));
    }

    /// Another worker has the root: what is left of it here means nothing any more. Not while it is handed over.
    pub fn drop_root(&mut self) -> Removed {
        let is_open = self.tables.get(&ROOT).is_some_and(|table| table.state == TableState::Open);
        if !is_open || self.coming.contains_key(&ROOT) {
            return Removed::default();
        }
        self.remove_tables(vec![ROOT])
    }
}
