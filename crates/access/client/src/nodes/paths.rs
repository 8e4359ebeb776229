//! Which containers paths are, as remembered.

use std::collections::HashMap;

use forebay_nodes::{DirId, ROOT};
use parking_lot::RwLock;

/// Paths remembered at most; then all are forgotten.
const PATHS_MAX: usize = 100_000;

/// Which container a path is, for those that are with another worker than the path before them: with it an operation is one
/// round trip to that worker.
///
/// What is remembered is valid as long as the worker has not heard of a renamed container, or of a lost worker, since: it says so by
/// another number of moves, and all that is remembered of it is forgotten. A walk that began before another call was told so may have
/// been led by what was there before: it begins again.
#[derive(Default)]
pub(crate) struct Paths(RwLock<State>);

#[derive(Default)]
struct State {
    containers: HashMap<Box<str>, DirId>,
    moves: HashMap<u64, Moves>,
    /// How often workers have said that what is remembered is old.
    told: u64,
}

/// What a worker is known to have heard of.
#[derive(Clone, Copy, Default)]
struct Moves {
    number: u64,
    /// When it said so, in `told`.
    told: u64,
}

/// Where a walk is.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'p> {
    /// The container that it came to, and the rest of the path.
    pub from: DirId,
    pub rest: &'p str,
    /// What the container's worker is known to have heard of.
    pub moves: u64,
    /// When it began.
    told: u64,
}

impl Paths {
    /// Where to begin with a path: the container of its longest part that is remembered.
    pub fn start<'p>(&self, path: &'p str, of_container: bool) -> Walk<'p> {
        let state = self.0.read();
        if state.containers.is_empty() {
            return state.at_root(path);
        }
        if of_container && let Some(dir) = state.containers.get(path) {
            return state.at(*dir, "");
        }
        let mut end = path.len();
        while let Some(at) = path[..end].rfind('/') {
            if let Some(dir) = state.containers.get(&path[..at]) {
                return state.at(*dir, &path[at + 1..]);
            }
            end = at;
        }
        state.at_root(path)
    }

    /// A walk from the root.
    pub fn at_root<'p>(&self, path: &'p str) -> Walk<'p> {
        self.0.read().at_root(path)
    }

    /// A walk has come to the container `dir`, which is `path` without its `rest`. None when its worker has said meanwhile that what leads
    /// there may be old.
    pub fn follow<'p>(&self, walk: &Walk<'_>, path: &'p str, rest: &'p str, dir: DirId) -> Option<Walk<'p>> {
        let mut state = self.0.write();
        let moves = state.moves_of(dir.worker);
        if moves.told > walk.told {
            return None;
        }
        if state.containers.len() >= PATHS_MAX {
            state.containers.clear();
        }
        debug_assert!(path.ends_with(rest), "{rest:?} is what is left of {path:?}");
        debug_assert!(walk.told <= state.told, "a walk began before now");
        let of = path[..path.len() - rest.len()].trim_end_matches('/');
        state.containers.insert(of.into(), dir);
        Some(Walk { from: dir, rest, moves: moves.number, told: walk.told })
    }

    /// A worker says that what is remembered of it is old.
    pub fn forget(&self, worker: u64, moves: u64) {
        let mut state = self.0.write();
        state.containers.retain(|_, dir| dir.worker != worker);
        state.told += 1;
        let told = state.told;
        state.moves.insert(worker, Moves { number: moves, told });
    }

    /// A worker is gone, with all that is remembered of it.
    pub fn forget_lost(&self, worker: u64) {
        let mut state = self.0.write();
        state.containers.retain(|_, dir| dir.worker != worker);
    }
}

impl State {
    fn at_root<'p>(&self, path: &'p str) -> Walk<'p> {
        Walk { from: ROOT, rest: path, moves: 0, told: self.told }
    }

    fn at<'p>(&self, dir: DirId, rest: &'p str) -> Walk<'p> {
        Walk { from: dir, rest, moves: self.moves_of(dir.worker).number, told: self.told }
    }

    fn moves_of(&self, worker: u64) -> Moves {
        self.moves.get(&worker).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: DirId = DirId { worker: 3, number: 1 };

    #[test]
    fn a_walk_that_began_before_its_worker_was_told_of_a_move_begins_again() {
        let paths = Paths::default();
        paths.forget(3, 7);
        let (old, path) = (paths.at_root("a/k"), "a/k");
        paths.forget(3, 8);
        assert!(paths.follow(&old, path, "k", DIR).is_none(), "it was led by what was there before");
        assert!(paths.start(path, false).from == ROOT, "and is not remembered");
        let new = paths.at_root(path);
        paths.forget(4, 1);
        let there = paths.follow(&new, path, "k", DIR).expect("another worker's word is about others");
        assert_eq!((there.from, there.rest, there.moves), (DIR, "k", 8));
        let remembered = paths.start(path, false);
        assert_eq!((remembered.from, remembered.rest, remembered.moves), (DIR, "k", 8));
        paths.forget(3, 9);
        assert!(paths.start(path, false).from == ROOT);
    }
}
