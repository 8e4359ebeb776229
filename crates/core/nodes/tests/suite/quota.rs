//! What a container may have, against sums over all that is in it.

use std::collections::BTreeMap;

use forebay_nodes::{Affinity, Carton, Condition, CreateOptions, DirId, Namespace, NodeErrorKind, NodeType, ROOT, Usage};
use proptest::prelude::*;

use crate::store::{NOW, Store};

/// One in the other, and one beside them.
const DIRS: [&str; 3] = ["/tmp/p", "/tmp/p/in", "/tmp/q"];

/// Whether a container is another one or in it.
fn is_in(dir: usize, outer: usize) -> bool {
    dir == outer || (dir, outer) == (1, 0)
}

type Place = (usize, &'static str);

#[derive(Clone, Debug)]
enum Step {
    File(Place),
    Put(Place, u64),
    Append(Place, u64),
    Write(Place, u64, u64),
    Rename(Place, Place),
    Replace(Place),
    Delete(Place),
    Quota(usize, Option<u64>),
}

/// Files and values by their places, as whether they are files and their bytes; and what the containers may have.
#[derive(Default)]
struct Model {
    nodes: BTreeMap<Place, (bool, u64)>,
    quotas: [Option<u64>; 3],
}

impl Model {
    fn bytes(&self, of: impl Fn(usize) -> bool) -> u64 {
        self.nodes.iter().filter(|(place, _)| of(place.0)).map(|(_, node)| node.1).sum()
    }

    /// As the namespace says it: of its own only, or with a quota of all that is below it.
    fn usage(&self, dir: usize) -> Usage {
        let quota = self.quotas[dir];
        Usage { bytes: self.bytes(|at| if quota.is_some() { is_in(at, dir) } else { at == dir }), quota }
    }

    /// Whether a node may have so many bytes at a place, by all quotas that it is not below already.
    fn fits(&self, place: Place, bytes: u64, from: Option<usize>) -> Result<(), NodeErrorKind> {
        let before = self.nodes.get(&place).map_or(0, |node| node.1);
        let is_full = |dir: usize| {
            let is_new = is_in(place.0, dir) && from.is_none_or(|from| !is_in(from, dir));
            is_new && self.quotas[dir].is_some_and(|quota| self.bytes(|at| is_in(at, dir)) - before + bytes > quota)
        };
        if bytes > before && (0..DIRS.len()).any(is_full) { Err(NodeErrorKind::NoSpace) } else { Ok(()) }
    }

    fn grow(&mut self, place: Place, to: impl Fn(u64) -> Result<u64, NodeErrorKind>) -> Result<(), NodeErrorKind> {
        match self.nodes.get(&place) {
            None => Err(NodeErrorKind::NotFound),
            Some((false, _)) => Err(NodeErrorKind::WrongType),
            Some((true, bytes)) => {
                let bytes = to(*bytes)?;
                self.fits(place, bytes, None)?;
                self.nodes.insert(place, (true, bytes));
                Ok(())
            }
        }
    }

    fn apply(&mut self, step: &Step) -> Result<(), NodeErrorKind> {
        match *step {
            Step::File(place) if self.nodes.contains_key(&place) => return Err(NodeErrorKind::Exists),
            Step::File(place) => {
                self.nodes.insert(place, (true, 0));
            }
            Step::Put(place, bytes) => {
                if self.nodes.get(&place).is_some_and(|node| node.0) {
                    return Err(NodeErrorKind::WrongType);
                }
                self.fits(place, bytes, None)?;
                self.nodes.insert(place, (false, bytes));
            }
            Step::Append(place, more) => self.grow(place, |bytes| Ok(bytes + more))?,
            Step::Write(place, offset, len) => {
                self.grow(place, |bytes| if offset > bytes { Err(NodeErrorKind::Invalid) } else { Ok(bytes.max(offset + len)) })?;
            }
            Step::Rename(from, to) => {
                let node = *self.nodes.get(&from).ok_or(NodeErrorKind::NotFound)?;
                if from == to {
                    return Ok(());
                }
                if self.nodes.get(&to).is_some_and(|old| old.0 || node.0) {
                    return Err(NodeErrorKind::Exists);
                }
                if from.0 != to.0 {
                    self.fits(to, node.1, Some(from.0))?;
                }
                self.nodes.remove(&from);
                self.nodes.insert(to, node);
            }
            Step::Replace(place) => {
                let node = self.nodes.remove(&place).ok_or(NodeErrorKind::NotFound)?;
                self.nodes.insert((place.0, "c"), node);
            }
            Step::Delete(place) => {
                self.nodes.remove(&place).ok_or(NodeErrorKind::NotFound)?;
            }
            Step::Quota(dir, quota) => self.quotas[dir] = quota,
        }
        Ok(())
    }
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..3usize, prop::sample::select(vec!["a", "b"]));
    let bytes = || prop::sample::select(vec![0, 10, 90, (16 << 10) + 1, 70_000]);
    prop_oneof![
        2 => place().prop_map(Step::File),
        3 => (place(), bytes()).prop_map(|(place, bytes)| Step::Put(place, bytes)),
        3 => (place(), bytes()).prop_map(|(place, bytes)| Step::Append(place, bytes)),
        1 => (place(), 0..100u64, bytes()).prop_map(|(place, offset, bytes)| Step::Write(place, offset, bytes)),
        3 => (place(), place()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => place().prop_map(Step::Replace),
        1 => place().prop_map(Step::Delete),
        2 => (0..3usize, prop::sample::select(vec![None, Some(0), Some(100), Some(20_000), Some(150_000)]))
            .prop_map(|(dir, quota)| Step::Quota(dir, quota)),
    ]
}

fn path((dir, name): Place) -> String {
    format!("{}/{name}", DIRS[dir])
}

fn run(store: &mut Store, dirs: [DirId; 3], step: &Step) -> Result<(), NodeErrorKind> {
    let bytes = |len: u64| vec![7; len as usize];
    let done = match *step {
        Step::File(place) => store.create(&path(place), CreateOptions::new(NodeType::File)),
        Step::Put(place, len) => store.put(&path(place), &bytes(len)).map(drop),
        Step::Append(place, len) => store.append(&path(place), &bytes(len)).map(drop),
        Step::Write(place, offset, len) => store.write(&path(place), offset, &bytes(len)).map(drop),
        Step::Rename(from, to) => store.rename(&path(from), &path(to)),
        Step::Replace((dir, name)) => store.names.replace(dirs[dir], name, "c", Condition::Any),
        Step::Delete(place) => store.delete(&path(place), false),
        Step::Quota(dir, quota) => store.names.set_quota(dirs[dir], quota),
    };
    done.map_err(|error| error.kind)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn a_quota_counts_what_is_there(steps in prop::collection::vec(step(), 1..80)) {
        let (mut store, mut model) = (Store::new(1 << 30), Model::default());
        let dirs = DIRS.map(|path| {
            store.create(path, CreateOptions::new(NodeType::Directory)).unwrap();
            path[5..].split('/').fold(ROOT, |dir, name| store.names.container_of(dir, name).unwrap())
        });
        for step in &steps {
            prop_assert_eq!(run(&mut store, dirs, step), model.apply(step), "{:?}", step);
            for (at, dir) in dirs.into_iter().enumerate() {
                prop_assert_eq!(store.names.usage(dir).unwrap(), model.usage(at), "{:?}", step);
            }
        }
    }
}

/// A worker's part with a directory `d`, and that.
fn part(worker: u64, quota: u64) -> (Namespace, DirId) {
    let mut names = Namespace::new(worker, 1 << 20);
    names.make_root();
    names.create(ROOT, "d", CreateOptions::new(NodeType::Directory)).unwrap();
    let dir = names.container_of(ROOT, "d").unwrap();
    names.set_quota(dir, Some(quota)).unwrap();
    (names, dir)
}

#[test]
fn what_is_refused_names_the_container_its_quota_and_what_is_used() {
    let (mut names, dir) = part(1, 100);
    names.put(dir, "k", vec![0; 60].into()).unwrap();
    let refused = names.put(dir, "l", vec![0; 41].into()).unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::NoSpace);
    for what in ["\"l\"", "/tmp/d", "quota of 100", "60 of them", "41 more"] {
        assert!(refused.message.contains(what), "{refused}");
    }
    names.put(dir, "l", vec![0; 40].into()).unwrap();
    names.set_quota(dir, Some(10)).unwrap();
    names.put(dir, "k", vec![0; 50].into()).unwrap();
    assert_eq!(names.put(dir, "k", vec![0; 51].into()).unwrap_err().kind, NodeErrorKind::NoSpace, "too much is there");
    names.set_quota(dir, None).unwrap();
    names.put(dir, "k", vec![0; 5000].into()).unwrap();
}

fn directory(names: &mut Namespace, dir: DirId, name: &str) -> DirId {
    names.create(dir, name, CreateOptions::new(NodeType::Directory)).unwrap();
    names.container_of(dir, name).unwrap()
}

fn kind<T>(done: Result<T, forebay_nodes::NodeError>) -> Result<T, NodeErrorKind> {
    done.map_err(|error| error.kind)
}

#[test]
fn a_quota_is_over_all_containers_below_wherever_they_are_renamed_to() {
    let (mut names, dir) = part(1, 100);
    let inner = directory(&mut names, dir, "inner");
    let deep = directory(&mut names, inner, "deep");
    let outside = directory(&mut names, ROOT, "outside");
    names.put(deep, "k", vec![0; 60].into()).unwrap();
    assert_eq!(names.usage(dir).unwrap(), Usage { bytes: 60, quota: Some(100) });
    assert_eq!(names.usage(inner).unwrap(), Usage { bytes: 0, quota: None }, "its own");
    let refused = names.put(inner, "l", vec![0; 41].into()).unwrap_err();
    assert!(refused.kind == NodeErrorKind::NoSpace && refused.message.contains("/tmp/d has a quota of 100"), "{refused}");
    // Within it nothing comes to more.
    names.put(inner, "l", vec![0; 40].into()).unwrap();
    names.rename((deep, "k"), (dir, "k")).unwrap();
    names.rename((inner, "deep"), (dir, "deep")).unwrap();
    assert_eq!(names.usage(dir).unwrap().bytes, 100);
    // What goes out takes its use along, and comes back with it.
    names.rename((dir, "inner"), (outside, "inner")).unwrap();
    assert_eq!(names.usage(dir).unwrap().bytes, 60);
    names.put(dir, "more", vec![0; 1].into()).unwrap();
    assert_eq!(kind(names.rename((outside, "inner"), (deep, "inner"))), Err(NodeErrorKind::NoSpace));
    names.delete(dir, "more", false).unwrap();
    names.rename((outside, "inner"), (deep, "inner")).unwrap();
    assert_eq!(names.usage(dir).unwrap().bytes, 100);
    // One of its own holds beside it.
    names.set_quota(deep, Some(40)).unwrap();
    names.delete(dir, "k", false).unwrap();
    let refused = names.put(inner, "m", vec![0; 1].into()).unwrap_err();
    assert!(refused.message.contains("/tmp/d/deep has a quota of 40 bytes, 40 of them used"), "{refused}");
    names.put(dir, "m", vec![0; 60].into()).unwrap();
    names.delete(dir, "deep", true).unwrap();
    assert_eq!(names.usage(dir).unwrap().bytes, 60);
}

#[test]
fn what_a_quota_is_over_stays_with_one_worker() {
    let (mut names, dir) = part(1, 100);
    let elsewhere = DirId { worker: 2, number: 7 };
    let table = || CreateOptions::new(NodeType::Table);
    assert!(names.is_bounded(dir) && !names.is_tied(dir) && !names.is_bounded(ROOT));
    assert_eq!(kind(names.link(dir, "t", table(), elsewhere)), Err(NodeErrorKind::Retry), "it is to be made here");
    names.link(ROOT, "t", table(), elsewhere).unwrap();
    assert_eq!(kind(names.rename((ROOT, "t"), (dir, "t"))), Err(NodeErrorKind::Invalid));
    let other = directory(&mut names, ROOT, "other");
    names.rename((ROOT, "t"), (other, "t")).unwrap();
    assert_eq!(kind(names.set_quota(other, Some(100))), Err(NodeErrorKind::Invalid), "it holds one of another worker");
    assert_eq!(kind(names.rename((ROOT, "other"), (dir, "other"))), Err(NodeErrorKind::Invalid));
    assert_eq!(kind(names.set_quota(ROOT, Some(100))), Err(NodeErrorKind::Invalid));
    names.set_quota(other, None).unwrap();

    let inner = directory(&mut names, dir, "inner");
    for tied in [dir, inner] {
        assert!(names.is_tied(tied));
        assert_eq!(kind(names.begin_handover(tied)).err(), Some(NodeErrorKind::Retry));
    }
    let beside = directory(&mut names, ROOT, "beside");
    names.begin_handover(beside).unwrap();
    assert_eq!(kind(names.rename((ROOT, "beside"), (dir, "beside"))), Err(NodeErrorKind::Moving), "it is about to go");
    names.abort_handover(beside);
    names.set_quota(dir, None).unwrap();
    names.begin_handover(inner).unwrap();
    assert_eq!(kind(names.set_quota(dir, Some(100))), Err(NodeErrorKind::Moving));
}

#[test]
fn a_container_that_came_from_another_worker_is_counted_from_then_on() {
    let (mut names, _) = part(1, 100);
    let (other, elsewhere) = (directory(&mut names, ROOT, "other"), DirId { worker: 2, number: 7 });
    names.link(other, "in", CreateOptions::new(NodeType::Directory), elsewhere).unwrap();
    assert_eq!(kind(names.set_quota(other, Some(100))), Err(NodeErrorKind::Invalid));
    let carton = Carton { old: elsewhere, kind: NodeType::Directory, affinity: Affinity::default(), parent: other, quota: None };
    let id = names.begin_takeover(2, carton).unwrap();
    names.end_takeover(id).unwrap();
    assert!(names.relink(elsewhere, id).unwrap());
    names.settle_takeover(id, Some(other));
    names.set_quota(other, Some(100)).unwrap();
    names.put(id, "k", vec![0; 60].into()).unwrap();
    assert_eq!(names.usage(other).unwrap().bytes, 60);
    assert_eq!(kind(names.put(id, "l", vec![0; 41].into())), Err(NodeErrorKind::NoSpace));
}

#[test]
fn a_container_that_comes_the_long_way_from_the_same_worker_counts_with_all_that_is_in_it() {
    let (mut names, dir) = part(1, 100);
    let other = directory(&mut names, ROOT, "other");
    let inside = directory(&mut names, other, "inside");
    names.put(inside, "k", vec![0; 80].into()).unwrap();
    let moving = names.begin_move(ROOT, "other").unwrap();
    names.arrive(7, 1, dir, "other", moving.clone()).unwrap();
    assert_eq!(kind(names.put(dir, "l", vec![0; 21].into())), Err(NodeErrorKind::NoSpace), "there will be no room");
    assert_eq!(kind(names.put(inside, "l", vec![0; 21].into())), Err(NodeErrorKind::NoSpace), "nor in what comes");
    assert!(names.is_tied(inside) && names.is_bounded(inside));
    names.commit_move(ROOT, "other").unwrap();
    names.settle(7, true);
    assert_eq!(names.usage(dir).unwrap().bytes, 80);
    assert_eq!(kind(names.put(inside, "l", vec![0; 21].into())), Err(NodeErrorKind::NoSpace));
    let moving = names.begin_move(dir, "other").unwrap();
    names.arrive(8, 1, dir, "again", moving).unwrap();
    assert_eq!(names.usage(dir).unwrap().bytes, 80, "within it nothing comes to more");
}

#[test]
fn what_comes_from_another_worker_counts_from_the_first_step_on() {
    let ((mut names, dir), (mut source, _)) = (part(1, 100), part(2, 100));
    source.put(ROOT, "k", vec![0; 80].into()).unwrap();
    let moving = source.begin_move(ROOT, "k").unwrap();
    names.arrive(7, 2, dir, "k", moving.clone()).unwrap();
    assert_eq!(names.put(dir, "l", vec![0; 21].into()).unwrap_err().kind, NodeErrorKind::NoSpace, "there will be no room");
    names.settle(7, false);
    names.put(dir, "l", vec![0; 21].into()).unwrap();
    assert_eq!(names.arrive(8, 2, dir, "k", moving.clone()).unwrap_err().kind, NodeErrorKind::NoSpace);
    names.delete(dir, "l", false).unwrap();
    names.arrive(9, 2, dir, "k", moving).unwrap();
    names.settle(9, true);
    source.commit_move(ROOT, "k").unwrap();
    assert_eq!(names.usage(dir).unwrap(), Usage { bytes: 80, quota: Some(100) });
    let container = source.begin_move(ROOT, "d").unwrap();
    assert_eq!(names.arrive(10, 2, dir, "d", container).unwrap_err().kind, NodeErrorKind::Invalid);
}

#[test]
fn a_quota_goes_with_its_container_to_another_worker() {
    let ((mut source, old), mut names) = (part(1, 100), Namespace::new(2, 1 << 20));
    source.put(old, "k", vec![0; 60].into()).unwrap();
    let carton = source.begin_handover(old).unwrap();
    let id = names.begin_takeover(1, carton).unwrap();
    let (packed, last) = source.pack(old, None, 1 << 20, NOW).unwrap();
    assert!(last);
    names.unpack(id, packed, NOW).unwrap();
    names.end_takeover(id).unwrap();
    names.settle_takeover(id, Some(ROOT));
    assert_eq!(names.usage(id).unwrap(), Usage { bytes: 60, quota: Some(100) });
    assert_eq!(names.put(id, "l", vec![0; 41].into()).unwrap_err().kind, NodeErrorKind::NoSpace);
    names.put(id, "l", vec![0; 40].into()).unwrap();
}
