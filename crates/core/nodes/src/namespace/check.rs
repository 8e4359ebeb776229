//! What is true of a part of the namespace between any two changes.

use super::Namespace;
use super::table::Table;
use crate::node::Node;

/// A part of at most so many nodes is looked at as a whole after each change, where debug assertions are on.
const SMALL_NODES: u64 = 64;

impl Namespace {
    /// What a change ends with: one that has broken something is taken back.
    pub(super) fn check_small(&self) {
        if cfg!(debug_assertions) && self.counts.nodes <= SMALL_NODES {
            self.check();
        }
    }

    /// Counts, leases and the names of containers are those of the nodes that are here. O(nodes).
    pub(super) fn check(&self) {
        let nodes = || self.tables.values().flat_map(|table| &table.nodes);
        assert_eq!(self.counts.nodes, nodes().count() as u64, "nodes are counted");
        let bytes: u64 = nodes().map(|(name, node)| Self::size(name, node)).sum();
        assert_eq!(self.counts.bytes, bytes, "bytes of names and values are counted");
        self.tables.values().for_each(Table::check);
        let leased = nodes().filter(|(_, node)| node.flags().is_leased()).count();
        assert_eq!(self.leases.len(), leased, "each node with a lease has one");
        for (dir, name) in self.leases.keys() {
            let node = self.tables.get(dir).and_then(|table| table.find(name));
            assert!(node.is_some_and(|node| node.flags().is_leased()), "the lease of {name:?} is a node's");
        }
        for (id, (dir, name)) in &self.links {
            let leads_to = self.tables.get(dir).and_then(|table| table.find(name)).and_then(Node::container);
            assert_eq!(leads_to, Some(*id), "{name:?} is the name of its container");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::namespace::operations::CreateOptions;
    use crate::namespace::undo::Back;
    use crate::namespace::{Arriving, TableState};
    use crate::node::{File, Flags, Value};
    use crate::terms::{Affinity, BlockRef, DirId, NodeType, ROOT, StorageClass};

    const ELSEWHERE: DirId = DirId { worker: 9, number: 9 };

    /// A value, a file with a lease and a directory, of which something is spoiled before or in the midst of the next change.
    fn spoiled(spoil: impl FnOnce(&mut Namespace)) {
        let mut names = Namespace::new(1, 1 << 20);
        names.make_root();
        names.put(ROOT, "value", Value::from(vec![7; 100])).unwrap();
        names.create(ROOT, "file", CreateOptions::new(NodeType::File)).unwrap();
        names.set_lease(ROOT, "file", Some(Duration::from_secs(1))).unwrap();
        names.create(ROOT, "dir", CreateOptions::new(NodeType::Directory)).unwrap();
        spoil(&mut names);
        names.check();
    }

    fn root(names: &mut Namespace) -> &mut Table {
        names.tables.get_mut(&ROOT).unwrap()
    }

    fn flags() -> Flags {
        Flags::new(true, StorageClass::Dram, 0)
    }

    fn file(names: &mut Namespace) -> &mut File {
        match root(names).nodes.get_mut("file") {
            Some(Node::File(_, file)) => file,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_sound_passes() {
        spoiled(|_| {});
    }

    #[test]
    #[should_panic(expected = "nodes are counted")]
    fn a_node_that_is_not_counted_is_caught() {
        spoiled(|names| names.counts.nodes -= 1);
    }

    #[test]
    #[should_panic(expected = "bytes of names and values are counted")]
    fn bytes_that_were_never_given_back_are_caught() {
        spoiled(|names| names.counts.bytes += 1);
    }

    #[test]
    #[should_panic(expected = "a container's bytes are those of its nodes")]
    fn a_container_that_counts_too_much_is_caught() {
        spoiled(|names| root(names).used += 1);
    }

    #[test]
    #[should_panic(expected = "a container has those of its nodes")]
    fn a_container_that_counts_too_little_is_caught() {
        spoiled(|names| {
            root(names).used -= 1;
            let _ = names.delete(ROOT, "value", false);
        });
    }

    #[test]
    #[should_panic(expected = "a file's blocks end where their lengths say")]
    fn a_block_of_another_length_is_caught() {
        let block = |len| BlockRef { worker: 1, number: 1, len };
        spoiled(|names| {
            let serial = names.view(ROOT, "file", 0, 0).unwrap().serial;
            names.append_blocks(ROOT, "file", serial, 0, &[block(10)]).unwrap();
            file(names).replace(|_| block(11));
        });
    }

    #[test]
    #[should_panic(expected = "each node with a lease has one")]
    fn a_lease_that_got_lost_is_caught() {
        spoiled(|names| names.leases.clear());
    }

    #[test]
    #[should_panic(expected = "is a node's")]
    fn a_lease_of_another_node_is_caught() {
        spoiled(|names| {
            names.leases.clear();
            names.leases.insert((ROOT, "value".into()), Duration::from_secs(1));
        });
    }

    #[test]
    #[should_panic(expected = "is the name of its container")]
    fn a_link_that_stayed_behind_is_caught() {
        spoiled(|names| drop(names.links.insert(ELSEWHERE, (ROOT, "value".into()))));
    }

    #[test]
    #[should_panic(expected = "a node goes to another place")]
    fn a_node_that_is_moved_to_where_it_is_is_caught() {
        spoiled(|names| names.whole(|names| names.relocate((ROOT, "value"), (ROOT, "value"))));
    }

    #[test]
    #[should_panic(expected = "whose place it takes")]
    fn a_value_in_the_place_of_a_file_is_caught() {
        let value = || Node::of_value(flags(), Value::from(vec![7; 10]));
        spoiled(|names| names.whole(|names| names.put_over(ROOT, "file", value(), (0, 10))));
    }

    #[test]
    #[should_panic(expected = "was free")]
    fn a_new_node_in_the_place_of_another_one_is_caught() {
        let value = || Node::of_value(flags(), Value::from(vec![7; 10]));
        spoiled(|names| names.whole(|names| names.place_new(ROOT, "value", value())));
    }

    #[test]
    #[should_panic(expected = "no container takes the place of another one")]
    fn a_container_over_another_one_is_caught() {
        let table = || Table::new(NodeType::Directory, Affinity::default(), ROOT);
        spoiled(|names| names.whole(|names| names.step_table(ROOT, Some(table()))));
    }

    #[test]
    #[should_panic(expected = "one node at a time is on its way to a place")]
    fn two_nodes_on_their_way_to_a_place_are_caught() {
        let arriving = |rename| Arriving { rename, source: 2, node: Node::of_value(flags(), Value::from(Vec::new())) };
        spoiled(|names| {
            names.whole(|names| {
                names.step_arriving(ROOT, "new", Some(arriving(1)));
                names.step_arriving(ROOT, "new", Some(arriving(2)));
            });
        });
    }

    #[test]
    #[should_panic(expected = "changes are made as wholes")]
    fn a_step_outside_of_a_change_is_caught() {
        spoiled(|names| names.undo.note(Back::State(ROOT, TableState::Open)));
    }
}
