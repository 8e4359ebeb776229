//! Which containers paths are, as remembered.

use std::collections::HashMap;

use forebay_nodes::{DirId, ROOT};
use parking_lot::RwLock;

/// Paths remembered at most; then all are forgotten.
const PATHS_MAX: usize = 100_000;

/// Which container a path is, for those that are with another worker than the path before them: with it an operation is one
/// round trip to that worker.
///
/// What is remembered is valid as long as the worker has not heard of a renamed container since ([`Self::moves`]).
#[derive(Default)]
pub(crate) struct Paths(RwLock<State>);

#[derive(Default)]
struct State {
    containers: HashMap<Box<str>, DirId>,
    moves: HashMap<u64, u64>,
}

impl Paths {
    /// Where to begin with a path: the container of its longest part that is remembered, the rest of the path, and the
    /// number of renames that its worker is known to have heard of.
    pub fn start<'p>(&self, path: &'p str, of_container: bool) -> (DirId, &'p str, u64) {
        let state = self.0.read();
        if state.containers.is_empty() {
            return (ROOT, path, 0);
        }
        if of_container && let Some(dir) = state.containers.get(path) {
            return (*dir, "", state.moves_of(dir.worker));
        }
        let mut end = path.len();
        while let Some(at) = path[..end].rfind('/') {
            if let Some(dir) = state.containers.get(&path[..at]) {
                return (*dir, &path[at + 1..], state.moves_of(dir.worker));
            }
            end = at;
        }
        (ROOT, path, 0)
    }

    /// The number of renames that a worker is known to have heard of. To be asked for before a path is walked.
    pub fn moves(&self, worker: u64) -> u64 {
        self.0.read().moves_of(worker)
    }

    /// `path` is the container `dir`.
    pub fn learn(&self, path: &str, dir: DirId) {
        let mut state = self.0.write();
        if state.containers.len() >= PATHS_MAX {
            state.containers.clear();
        }
        state.containers.insert(path.into(), dir);
    }

    /// A worker says that what is remembered of it is old.
    pub fn forget(&self, worker: u64, moves: u64) {
        let mut state = self.0.write();
        state.containers.retain(|_, dir| dir.worker != worker);
        state.moves.insert(worker, moves);
    }
}

impl State {
    fn moves_of(&self, worker: u64) -> u64 {
        self.moves.get(&worker).copied().unwrap_or(0)
    }
}
