//! From a path to the container of its last name.

use crate::namespace::Namespace;
use crate::node::Node;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult};

/// Where the walk along a path has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At<'p> {
    /// The container is here, and this is the name in it.
    Here(DirId, &'p str),
    /// The path goes on in a container of another worker.
    Elsewhere(DirId, &'p str),
    /// The path has no names: what it begins in.
    Itself,
}

impl Namespace {
    /// Walks from a container along a path (names with `/` between them) to the container of the last name.
    /// `NotFound` and `NotContainer` say where it ends.
    pub fn walk<'p>(&self, from: DirId, path: &'p str) -> NodeResult<At<'p>> {
        if path.is_empty() {
            return Ok(At::Itself);
        }
        let (mut dir, mut rest) = (from, path);
        while let Some((name, after)) = rest.split_once('/') {
            match self.table(dir)?.find(name) {
                None => return Err(NodeError::not_found(name)),
                Some(Node::Container(_, link)) => {
                    (dir, rest) = (link.1, after);
                    if !self.has(dir) {
                        return Ok(At::Elsewhere(dir, rest));
                    }
                }
                Some(other) => {
                    let kind = other.kind();
                    return Err(NodeError::new(
                        NodeErrorKind::NotContainer,
                        format!("{name:?} is a {kind}, which holds no nodes"),
                    ));
                }
            }
        }
        Ok(At::Here(dir, rest))
    }

    /// The container that a whole path names, for what is to be listed. When it leads to a container of another worker, the rest of
    /// the path comes with that.
    pub fn container<'p>(&self, from: DirId, path: &'p str) -> NodeResult<(DirId, &'p str)> {
        match self.walk(from, path)? {
            At::Itself => Ok((from, "")),
            At::Elsewhere(dir, rest) => Ok((dir, rest)),
            At::Here(dir, name) => match self.table(dir)?.find(name) {
                None => Err(NodeError::not_found(name)),
                Some(Node::Container(_, link)) => Ok((link.1, "")),
                Some(other) => Err(NodeError::new(
                    NodeErrorKind::NotContainer,
                    format!("{name:?} is a {}, which holds no nodes", other.kind()),
                )),
            },
        }
    }
}
