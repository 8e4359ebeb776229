//! How much a container's files and values may have.

use super::Namespace;
use crate::node::Node;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};

impl Namespace {
    /// `NoSpace` when the file or value of a name may not have so many bytes. What shrinks may, also where more is there than the quota
    /// allows by now. What is on its way here counts as if it had come.
    pub(crate) fn check_quota(&self, dir: DirId, name: &str, len: u64) -> NodeResult<()> {
        let Some((table, quota)) = self.tables.get(&dir).and_then(|table| Some((table, table.quota?))) else { return Ok(()) };
        let before = table.find(name).map_or(0, Node::len);
        let used = table.used.saturating_add(self.coming_to(dir));
        if len <= before || (used - before).saturating_add(len) <= quota {
            return Ok(());
        }
        let (container, more) = (self.path_of(dir), len - before);
        Err(NodeError::new(
            NodeErrorKind::NoSpace,
            format!(
                "{name:?}: {container} has a quota of {quota} bytes, {used} of them used, and these are {more} more: delete something in it, or \
                 raise the quota"
            ),
        ))
    }

    /// Bytes of nodes on their way to a container.
    fn coming_to(&self, dir: DirId) -> u64 {
        self.arriving.iter().filter(|((to, _), _)| *to == dir).map(|(_, arriving)| arriving.node.len()).sum()
    }

    /// The path of a container, as far as its names are here.
    fn path_of(&self, dir: DirId) -> String {
        let (mut at, mut path) = (dir, String::new());
        // Each name of this part at most once.
        for _ in 0..=self.links.len() {
            let Some((parent, name)) = self.links.get(&at) else { break };
            path.insert_str(0, &format!("/{name}"));
            at = *parent;
        }
        match path.as_str() {
            _ if at == ROOT => format!("/tmp{path}"),
            "" => "the container".to_string(),
            _ => format!("the container ..{path}"),
        }
    }
}
