//! Leases, writers, room, and nodes between two workers.

use std::time::Duration;

use forebay_nodes::{Appended, At, CreateOptions, Got, Namespace, NodeErrorKind, NodeType, ROOT, StorageClass, Target, Value};

use crate::store::{LEASE, NOW, Store};

fn root(worker: u64) -> Namespace {
    let mut names = Namespace::new(worker, 1 << 20);
    names.make_root();
    names
}

#[test]
fn a_writer_that_died_can_be_taken_over_when_its_lease_is_out() {
    let mut names = root(1);
    names.create(ROOT, "f", CreateOptions::new(NodeType::File)).unwrap();
    names.open_writer(ROOT, "f", 7, NOW, LEASE).unwrap();
    let late = NOW + LEASE - Duration::from_millis(1);
    assert_eq!(names.append(ROOT, "f", b"x", 8, late, LEASE).unwrap_err().kind, NodeErrorKind::Retry);
    assert_eq!(names.append(ROOT, "f", b"x", 7, late, LEASE).unwrap(), Appended::Done(1));
    assert_eq!(names.append(ROOT, "f", b"x", 0, NOW + LEASE, LEASE).unwrap_err().kind, NodeErrorKind::Retry, "it wrote since");
    assert_eq!(names.open_writer(ROOT, "f", 8, late + LEASE, LEASE).unwrap(), 1);
    names.close_writer(ROOT, "f", 7).unwrap();
    assert_eq!(names.append(ROOT, "f", b"x", 7, late + LEASE, LEASE).unwrap_err().kind, NodeErrorKind::Retry);
    names.close_writer(ROOT, "f", 8).unwrap();
    assert_eq!(names.append(ROOT, "f", b"x", 0, late + LEASE, LEASE).unwrap(), Appended::Done(2));
}

#[test]
fn without_room_nothing_is_half_made() {
    let mut store = Store::new(1000);
    store.create("/tmp/t", CreateOptions::new(NodeType::Table)).unwrap();
    store.put("/tmp/t/k", b"old").unwrap();
    let (nodes, bytes) = (store.names.nodes(), store.names.bytes());
    for path in ["/tmp/t/k", "/tmp/t/new"] {
        assert_eq!(store.put(path, &[0; 900]).unwrap_err().kind, NodeErrorKind::NoSpace);
    }
    assert_eq!(store.get("/tmp/t/k").unwrap(), b"old");
    assert_eq!(store.stat("/tmp/t/new").unwrap(), None);
    assert_eq!((store.names.nodes(), store.names.bytes()), (nodes, bytes));
}

#[test]
fn nodes_go_when_their_leases_are_over_and_leases_go_with_nodes() {
    let mut names = root(1);
    for name in ["a", "b", "c"] {
        names.create(ROOT, name, CreateOptions::new(NodeType::Directory)).unwrap();
        names.set_lease(ROOT, name, Some(NOW)).unwrap();
    }
    names.rename((ROOT, "a"), (ROOT, "d")).unwrap();
    names.delete(ROOT, "b", false).unwrap();
    names.set_lease(ROOT, "c", Some(NOW + LEASE)).unwrap();
    assert_eq!(names.expired(NOW), [(ROOT, "d".to_string())]);
    names.set_lease(ROOT, "d", None).unwrap();
    assert_eq!(names.expired(NOW), []);
}

#[test]
fn storage_classes_are_inherited_unless_asked_for() {
    let mut store = Store::new(1 << 20);
    let on_disk = CreateOptions { class: Some(StorageClass::Disk), ..CreateOptions::new(NodeType::Directory) };
    store.create("/tmp/d", on_disk).unwrap();
    store.create("/tmp/d/e", CreateOptions::new(NodeType::Directory)).unwrap();
    store.put("/tmp/d/e/k", b"v").unwrap();
    store.create("/tmp/d/m", CreateOptions { class: Some(StorageClass::Dram), ..on_disk }).unwrap();
    let class = |path: &str| store.stat(path).unwrap().unwrap().class;
    assert_eq!(
        [class("/tmp/d/e"), class("/tmp/d/e/k"), class("/tmp/d/m")],
        [StorageClass::Disk, StorageClass::Disk, StorageClass::Dram]
    );
}

#[test]
fn a_rename_between_workers_ends_with_the_node_in_one_place_whoever_dies() {
    for committed in [true, false] {
        let (mut source, mut target) = (root(1), root(2));
        source.put(ROOT, "k", Value::from(b"v".to_vec())).unwrap();
        let moving = source.begin_move(ROOT, "k").unwrap();
        assert_eq!(source.put(ROOT, "k", Value::from(b"w".to_vec())).unwrap_err().kind, NodeErrorKind::Retry);
        assert_eq!(source.get(ROOT, "k").unwrap(), Got::Inline(b"v"), "readers see it where it was");
        target.arrive(5, 1, ROOT, "l", moving).unwrap();
        assert_eq!(target.get(ROOT, "l").unwrap_err().kind, NodeErrorKind::NotFound, "not before it is committed");
        assert_eq!(target.put(ROOT, "l", Value::from(b"w".to_vec())).unwrap_err().kind, NodeErrorKind::Retry);
        assert_eq!(target.unsettled(), [(5, 1)]);
        if committed {
            source.commit_move(ROOT, "k").unwrap();
        } else {
            source.abort_move(ROOT, "k");
        }
        target.settle(5, committed);
        target.settle(5, !committed);
        let here = |names: &Namespace, name| names.get(ROOT, name).is_ok();
        assert_eq!((here(&source, "k"), here(&target, "l")), (!committed, committed));
        assert_eq!(source.nodes() + target.nodes(), 1);
        source.put(ROOT, "k", Value::from(b"w".to_vec())).unwrap();
    }
}

#[test]
fn a_container_of_another_worker_is_followed_there() {
    let (mut here, mut there) = (root(1), Namespace::new(2, 1 << 20));
    let options = CreateOptions::new(NodeType::Directory);
    let id = there.adopt(NodeType::Directory, StorageClass::Dram, ROOT).unwrap();
    here.link(ROOT, "d", options, id).unwrap();
    assert_eq!(here.walk(ROOT, "d/e/f").unwrap(), At::Elsewhere(id, "e/f"));
    there.create(id, "e", options).unwrap();
    assert!(matches!(there.walk(id, "e/f").unwrap(), At::Here(_, "f")));
    assert_eq!(here.target("k", ROOT, "d").unwrap(), Target::Into(id));
    assert_eq!(here.elsewhere(ROOT, "d").unwrap(), Some(id));
    assert_eq!(there.remove_nodes(id, false).unwrap_err().kind, NodeErrorKind::NotEmpty);
    assert_eq!(there.orphans(|worker| worker != 0), [id], "its name was with a worker that is gone");
    there.remove_nodes(id, true).unwrap();
    assert_eq!(here.delete(ROOT, "d", false).unwrap().elsewhere, [id]);
    assert_eq!((here.nodes(), there.nodes()), (0, 0));
}
