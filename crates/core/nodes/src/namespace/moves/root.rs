//! The root, which one worker has: it comes to this one, or is another's from now on.

use crate::namespace::operations::Removed;
use crate::namespace::{Namespace, Table, TableState};
use crate::terms::{Affinity, NodeType, ROOT};

impl Namespace {
    /// This worker has the root from now on; nothing happens when it has it already. One that has come from another worker as
    /// a whole is taken over.
    pub fn make_root(&mut self) {
        self.whole(|names| {
            match names.coming.get(&ROOT).map(|coming| coming.is_whole) {
                Some(true) => {
                    names.step_coming(ROOT, None);
                    names.step_state(ROOT, TableState::Open);
                }
                Some(false) => names.drop_takeover(ROOT),
                None => {}
            }
            if !names.has(ROOT) {
                names.step_table(ROOT, Some(Table::new(NodeType::Directory, Affinity::default(), ROOT)));
            }
        });
    }

    /// Whether this worker has the root, and it is not on its way: there is nothing to make.
    pub fn has_root(&self) -> bool {
        self.has(ROOT) && !self.coming.contains_key(&ROOT)
    }

    /// Another worker has the root: what is left of it here means nothing any more. Not while it is handed over.
    pub fn drop_root(&mut self) -> Removed {
        let is_open = self.tables.get(&ROOT).is_some_and(|table| table.state == TableState::Open);
        if !is_open || self.coming.contains_key(&ROOT) {
            return Removed::default();
        }
        self.whole(|names| names.remove_tables(vec![ROOT]))
    }
}
