//! Leases, writers, room, and nodes between two workers.

use std::time::Duration;

use forebay_nodes::{
    Affinity, Appended, At, BlockRef, Condition, CreateOptions, DirId, Got, Location, Namespace, NodeErrorKind, NodeType, ROOT,
    StorageClass, Target, Value, WayUp, tag,
};

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
fn that_there_is_such_a_node_is_said_before_that_there_is_no_room() {
    let mut names = Namespace::new(1, 1000);
    names.make_root();
    let mut create = |name: &str| {
        let created = names.create(ROOT, name, CreateOptions::new(NodeType::File));
        (created.map_err(|error| error.kind), names.nodes(), names.bytes())
    };
    let (made, nodes, bytes) = create("a");
    assert_eq!((made, nodes), (Ok(()), 1));
    assert_eq!(create("a"), (Err(NodeErrorKind::Exists), nodes, bytes));
    let (full, nodes, bytes) = (0..).map(|at| create(&at.to_string())).find(|created| created.0.is_err()).unwrap();
    assert_eq!(full, Err(NodeErrorKind::NoSpace));
    for (name, why) in [("a", NodeErrorKind::Exists), ("b", NodeErrorKind::NoSpace), ("b/c", NodeErrorKind::Invalid)] {
        assert_eq!(create(name), (Err(why), nodes, bytes), "{name}");
    }
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
    store.create("/tmp/d", on_disk.clone()).unwrap();
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
fn locations_are_inherited_unless_asked_for_and_go_where_the_node_goes() {
    let (mut here, mut there) = (root(1), root(2));
    let at =
        |location: &str| CreateOptions { location: Some(location.parse().unwrap()), ..CreateOptions::new(NodeType::Directory) };
    let location = |names: &Namespace, dir, name: &str| names.stat(dir, name).unwrap().unwrap().location.to_string();
    // Numbers that another part gives to other locations.
    there.create(ROOT, "other", at("rack9")).unwrap();
    here.create(ROOT, "d", at("rack1")).unwrap();
    let dir = here.container(ROOT, "d").unwrap().0;
    here.create(dir, "f", CreateOptions::new(NodeType::File)).unwrap();
    here.put(dir, "k", Value::from(b"v".to_vec())).unwrap();
    here.create(dir, "e", at("rack2")).unwrap();
    here.create(dir, "free", at("any")).unwrap();
    let all = ["f", "k", "e", "free"].map(|name| location(&here, dir, name));
    assert_eq!(all, ["rack1", "rack1", "rack2", "any"]);
    assert_eq!(here.check_put(dir, "new").unwrap().location.as_str(), "rack1");
    here.rename((dir, "e"), (ROOT, "e")).unwrap();
    assert_eq!(location(&here, ROOT, "e"), "rack2");
    let moving = here.begin_move(dir, "f").unwrap();
    there.arrive(1, 1, ROOT, "f", moving).unwrap();
    here.commit_move(dir, "f").unwrap();
    there.settle(1, true);
    assert_eq!(location(&there, ROOT, "f"), "rack1");
    // A container that another worker takes over, and what comes into it then.
    let carton = here.begin_handover(dir).unwrap();
    let new = there.begin_takeover(1, carton).unwrap();
    there.unpack(new, here.pack(dir, None, u64::MAX, NOW).unwrap().0, NOW).unwrap();
    there.end_takeover(new).unwrap();
    here.commit_handover(dir, new);
    there.settle_takeover(new, Some(ROOT));
    there.put(new, "l", Value::from(b"v".to_vec())).unwrap();
    assert_eq!(["k", "free", "l"].map(|name| location(&there, new, name)), ["rack1", "any", "rack1"]);
}

#[test]
fn locations_that_no_node_asks_for_any_more_make_room_for_others() {
    let mut names = Namespace::new(1, 64 << 20);
    names.make_root();
    let at = |number: u32| CreateOptions {
        location: Some(format!("rack{number}").parse().unwrap()),
        ..CreateOptions::new(NodeType::KeyValue)
    };
    for number in 0..1000 {
        names.create(ROOT, &number.to_string(), at(number)).unwrap();
    }
    assert_eq!(names.create(ROOT, "more", at(1000)).unwrap_err().kind, NodeErrorKind::NoSpace);
    names.create(ROOT, "known", at(999)).unwrap();
    names.delete(ROOT, "500", false).unwrap();
    names.create(ROOT, "more", at(1000)).unwrap();
    for (name, location) in [("499", "rack499"), ("501", "rack501"), ("more", "rack1000"), ("known", "rack999")] {
        assert_eq!(names.stat(ROOT, name).unwrap().unwrap().location.as_str(), location);
    }
}

#[test]
fn labels_of_locations_are_short_lines() {
    let long = "x".repeat(256);
    for label in ["", "a\nb", &long] {
        assert_eq!(label.parse::<Location>().unwrap_err().kind, NodeErrorKind::Invalid, "{label:?}");
    }
    assert!("any".parse::<Location>().unwrap().is_anywhere());
    assert!(!"any".parse::<Location>().unwrap().is_at("any"));
    assert!("rack 1".parse::<Location>().unwrap().is_at("rack 1"));
}

#[test]
fn what_replaces_a_file_or_value_does_so_only_when_the_condition_is_true() {
    let mut names = root(1);
    let kind = |names: &Namespace, name: &str| names.stat(ROOT, name).unwrap().map(|stat| stat.kind);
    let draft = |names: &mut Namespace, bytes: &[u8]| {
        let hidden = CreateOptions { enumerable: false, ..CreateOptions::new(NodeType::File) };
        names.create(ROOT, "draft", hidden).unwrap();
        names.set_lease(ROOT, "draft", Some(NOW)).unwrap();
        names.append(ROOT, "draft", bytes, 0, NOW, LEASE).unwrap();
    };
    let blocks = [BlockRef { worker: 1, number: 7, len: 20_000 }];
    names.put(ROOT, "k", Value::Blocks(blocks.into())).unwrap();
    let old = tag(&blocks, &[], 20_000);
    draft(&mut names, b"new");
    let mut refused = |to: &str, condition| {
        let before = (names.nodes(), names.bytes());
        let error = names.replace(ROOT, "draft", to, condition).unwrap_err();
        assert_eq!((names.nodes(), names.bytes(), kind(&names, "draft")), (before.0, before.1, Some(NodeType::File)));
        error.kind
    };
    assert_eq!(refused("k", Condition::Absent), NodeErrorKind::Exists);
    assert_eq!(refused("k", Condition::Tag(old + 1)), NodeErrorKind::Exists);
    assert_eq!(refused("none", Condition::Tag(old)), NodeErrorKind::NotFound);
    assert_eq!(refused("draft", Condition::Any), NodeErrorKind::Invalid);
    assert_eq!(refused("a/b", Condition::Any), NodeErrorKind::Invalid);
    names.replace(ROOT, "draft", "k", Condition::Tag(old)).unwrap();
    assert_eq!(names.take_freed(), blocks, "what was there is given back");
    assert_eq!((kind(&names, "draft"), kind(&names, "k")), (None, Some(NodeType::File)));
    assert!(names.stat(ROOT, "k").unwrap().unwrap().enumerable, "it is listed from now on");
    assert_eq!(names.expired(NOW + LEASE), [], "and stays");
    let new = tag(&[], b"new", 3);
    assert_eq!(names.delete_if(ROOT, "k", Condition::Tag(old)).unwrap_err().kind, NodeErrorKind::Exists);
    names.delete_if(ROOT, "k", Condition::Tag(new)).unwrap();
    assert_eq!(names.delete_if(ROOT, "k", Condition::Tag(new)).unwrap_err().kind, NodeErrorKind::NotFound);
    draft(&mut names, b"");
    names.create(ROOT, "d", CreateOptions::new(NodeType::Directory)).unwrap();
    for condition in [Condition::Any, Condition::Absent] {
        assert_eq!(names.replace(ROOT, "draft", "d", condition).unwrap_err().kind, NodeErrorKind::WrongType);
    }
    assert_eq!(names.replace(ROOT, "draft", "d", Condition::Tag(0)).unwrap_err().kind, NodeErrorKind::NotFound);
    assert_eq!(names.replace(ROOT, "d", "new", Condition::Any).unwrap_err().kind, NodeErrorKind::WrongType);
    names.replace(ROOT, "draft", "new", Condition::Absent).unwrap();
    // Nothing is replaced that is on its way.
    draft(&mut names, b"");
    names.begin_move(ROOT, "new").unwrap();
    assert_eq!(names.replace(ROOT, "draft", "new", Condition::Any).unwrap_err().kind, NodeErrorKind::Retry);
    assert_eq!(names.replace(ROOT, "new", "other", Condition::Any).unwrap_err().kind, NodeErrorKind::Retry);
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
fn what_comes_into_a_container_that_is_gone_gives_its_blocks_back_once() {
    for committed in [true, false] {
        let (mut source, mut target) = (root(1), root(2));
        let blocks = [BlockRef { worker: 1, number: 7, len: 20_000 }];
        source.put(ROOT, "k", Value::Blocks(blocks.into())).unwrap();
        target.create(ROOT, "d", CreateOptions::new(NodeType::Directory)).unwrap();
        let dir = target.container(ROOT, "d").unwrap().0;
        let moving = source.begin_move(ROOT, "k").unwrap();
        target.arrive(5, 1, dir, "k", moving).unwrap();
        target.delete(ROOT, "d", true).unwrap();
        if committed {
            source.commit_move(ROOT, "k").unwrap();
        } else {
            source.abort_move(ROOT, "k");
        }
        assert_eq!(target.settle(5, committed), None);
        let freed = target.take_freed();
        assert_eq!(freed.len(), usize::from(committed), "what stays keeps its blocks");
        assert_eq!(source.take_freed(), []);
        assert_eq!((source.nodes(), target.nodes()), (u64::from(!committed), 0));
    }
}

#[test]
fn a_tail_is_written_over_only_where_it_was_seen() {
    let mut names = root(1);
    let make = |names: &mut Namespace| {
        names.create(ROOT, "f", CreateOptions::new(NodeType::File)).unwrap();
        names.append(ROOT, "f", b"0123456789", 0, NOW, LEASE).unwrap();
        let view = names.view(ROOT, "f", 0, 10).unwrap();
        (view.serial, view.tail_at)
    };
    let seen = make(&mut names);
    names.append(ROOT, "f", b"more", 0, NOW, LEASE).unwrap();
    assert_eq!(names.write_tail(ROOT, "f", seen, 1, b"x").unwrap(), 14, "it has grown, and begins where it did");
    assert_eq!(names.view(ROOT, "f", 0, 3).unwrap().tail, b"0x2");
    let block = BlockRef { worker: 1, number: 7, len: 14 };
    names.append_blocks(ROOT, "f", seen.0, 14, &[block]).unwrap();
    assert_eq!(names.write_tail(ROOT, "f", seen, 1, b"y").unwrap_err().kind, NodeErrorKind::Retry, "it lies in a block by now");
    names.delete(ROOT, "f", false).unwrap();
    let again = make(&mut names);
    assert_eq!(names.write_tail(ROOT, "f", seen, 1, b"y").unwrap_err().kind, NodeErrorKind::Retry, "it is another file");
    names.write_tail(ROOT, "f", again, 1, b"y").unwrap();
}

#[test]
fn a_container_of_another_worker_is_followed_there() {
    let (mut here, mut there) = (root(1), Namespace::new(2, 1 << 20));
    let options = CreateOptions::new(NodeType::Directory);
    let id = there.adopt(NodeType::Directory, Default::default(), ROOT).unwrap();
    here.link(ROOT, "d", options.clone(), id).unwrap();
    assert_eq!(here.walk(ROOT, "d/e/f").unwrap(), At::Elsewhere(id, "e/f"));
    there.create(id, "e", options).unwrap();
    assert!(matches!(there.walk(id, "e/f").unwrap(), At::Here(_, "f")));
    assert_eq!(here.target("k", ROOT, "d").unwrap(), Target::Into(id));
    assert_eq!(here.elsewhere(ROOT, "d").unwrap(), Some(id));
    assert_eq!(there.remove_nodes(id, false).unwrap_err().kind, NodeErrorKind::NotEmpty);
    assert_eq!((there.strangers(), here.strangers()), (vec![id], vec![]));
    assert_eq!((there.nameless(vec![id]), here.nameless(vec![id])), (vec![id], vec![]), "its name is there, its nodes here");
    assert_eq!((there.missing(vec![id]), here.missing(vec![id])), (vec![], vec![id]));
    assert_eq!(here.container_elsewhere(ROOT, "d"), Some(id));
    // Nothing is said to its worker of a name that can't be deleted now.
    here.begin_move(ROOT, "d").unwrap();
    assert_eq!(here.elsewhere(ROOT, "d").unwrap_err().kind, NodeErrorKind::Retry);
    here.abort_move(ROOT, "d");
    there.remove_nodes(id, true).unwrap();
    assert_eq!(here.delete(ROOT, "d", false).unwrap().elsewhere, [id]);
    assert_eq!((here.nodes(), there.nodes()), (0, 0));
}

#[test]
fn a_container_does_not_come_into_itself_by_what_is_said_of_its_parent() {
    let mut names = root(1);
    let mut outer = ROOT;
    let mut chain = Vec::new();
    for name in ["a", "b", "c"] {
        names.create(outer, name, CreateOptions::new(NodeType::Directory)).unwrap();
        let At::Here(dir, _) = names.walk(outer, &format!("{name}/x")).unwrap() else { panic!("all is here") };
        outer = dir;
        chain.push(dir);
    }
    for dir in &chain {
        for below in chain.iter().skip_while(|other| *other != dir) {
            assert_eq!(names.set_parent(*dir, *below).unwrap_err().kind, NodeErrorKind::Invalid);
        }
    }
    assert_eq!(names.set_parent(ROOT, chain[0]).unwrap_err().kind, NodeErrorKind::Invalid);
    // Renames come to an end, and to the right one.
    assert_eq!(names.rename((ROOT, "a"), (chain[2], "a")).unwrap_err().kind, NodeErrorKind::Invalid);
    names.rename((chain[0], "b"), (ROOT, "b")).unwrap();
    names.set_parent(chain[0], chain[2]).unwrap();
    assert_eq!(names.set_parent(chain[1], chain[0]).unwrap_err().kind, NodeErrorKind::Invalid, "a is below b now");
}

#[test]
fn what_is_left_of_a_root_that_another_worker_has_is_dropped_and_its_containers_have_no_name() {
    let mut names = root(1);
    let options = CreateOptions::new(NodeType::Directory);
    names.create(ROOT, "here", options.clone()).unwrap();
    let elsewhere = DirId { worker: 2, number: 7 };
    names.link(ROOT, "there", options, elsewhere).unwrap();
    assert_eq!(names.strangers(), []);
    assert_eq!(names.drop_root().elsewhere, [elsewhere]);
    assert!(!names.has(ROOT) && names.nodes() == 0);
    let [left] = names.strangers()[..] else { panic!("the directory that was here") };
    names.remove_nodes(left, true).unwrap();
    assert_eq!((names.strangers(), names.bytes()), (vec![], 0));
}

/// What is on its way may be the other worker's by now, and nobody else knows of its blocks.
#[test]
fn a_worker_that_was_lost_has_nothing_and_gives_back_what_nobody_else_can_have() {
    let mut names = Namespace::new(1, 1 << 20);
    names.make_root();
    let block = |number| BlockRef { worker: 1, number, len: 9 };
    let large = |number| Value::Blocks([block(number)].into());
    names.put(ROOT, "still", large(1)).unwrap();
    names.put(ROOT, "moving", large(2)).unwrap();
    names.create(ROOT, "dir", CreateOptions::new(NodeType::Directory)).unwrap();
    names.link(ROOT, "elsewhere", CreateOptions::new(NodeType::Directory), DirId { worker: 2, number: 5 }).unwrap();
    names.begin_move(ROOT, "moving").unwrap();
    let number = names.number();
    let (removed, doubtful) = names.lose_all();
    assert_eq!((removed.blocks, removed.elsewhere), (vec![block(1)], vec![DirId { worker: 2, number: 5 }]));
    assert_eq!(doubtful, [block(2)]);
    assert_eq!((names.nodes(), names.bytes(), names.has(ROOT)), (0, 0, false));
    assert!(names.number() > number, "numbers go on");
}

#[test]
fn a_way_up_ends_where_a_name_is_elsewhere_and_goes_through_nothing_that_moves() {
    let mut names = root(1);
    let directory = || CreateOptions::new(NodeType::Directory);
    names.create(ROOT, "a", directory()).unwrap();
    let a = names.container_of(ROOT, "a").unwrap();
    names.create(a, "b", directory()).unwrap();
    let b = names.container_of(a, "b").unwrap();
    let foreign = names.adopt(NodeType::Directory, Affinity::default(), DirId { worker: 2, number: 9 }).unwrap();
    let other = DirId { worker: 3, number: 7 };
    assert_eq!(names.way_up(b, other), Ok(WayUp::At(ROOT)));
    assert_eq!(names.way_up(ROOT, other), Ok(WayUp::At(ROOT)));
    assert_eq!(names.way_up(foreign, other), Ok(WayUp::Perhaps(DirId { worker: 2, number: 9 })));
    names.link(b, "c", directory(), other).unwrap();
    assert_eq!(names.way_up(other, foreign), Ok(WayUp::At(ROOT)), "its name is here, its nodes are not");
    for outer in [a, b, other] {
        assert_eq!(names.way_up(other, outer).unwrap_err().kind, NodeErrorKind::Invalid);
    }
    names.begin_move(ROOT, "a").unwrap();
    assert_eq!(names.way_up(other, foreign).unwrap_err().kind, NodeErrorKind::Retry);
    names.abort_move(ROOT, "a");
    assert_eq!(names.way_up(DirId { worker: 1, number: 1 << 40 }, a).unwrap_err().kind, NodeErrorKind::Retry);
}
