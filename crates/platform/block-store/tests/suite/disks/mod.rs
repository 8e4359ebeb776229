//! A disk tier on several disks: blocks are spread, one disk that fails or is away takes nothing of the others with it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use forebay_block_store::{BlockStore, SegmentSpec, StoreSettings};
use forebay_types::{ErrorKind, Owner};

use crate::full_disk::replace;
use crate::support::*;

/// A store with a part of its disk tier in its own folder and one in each of the others, which are made where they are not there.
fn on_disks(folder: &Path, own_bytes: u64, others: &[(&str, u64)]) -> BlockStore {
    others.iter().for_each(|(name, _)| std::fs::create_dir_all(folder.join(name)).unwrap());
    BlockStore::open(settings(folder, own_bytes, others)).unwrap()
}

fn settings(folder: &Path, own_bytes: u64, others: &[(&str, u64)]) -> StoreSettings {
    let own = StoreSettings::new(folder.join("own"), 8 * MIB).with_disk(own_bytes);
    others.iter().fold(own, |settings, (name, bytes)| settings.with_disk_folder(folder.join(name), *bytes))
}

fn specs(count: u64) -> Vec<SegmentSpec> {
    (0..count).map(|number| spec(number, MIB as u32)).collect()
}

fn fill_each(store: &BlockStore, specs: &[SegmentSpec]) {
    for spec in specs {
        fill(store, spec, all(spec)).unwrap();
        wait(store.flush());
    }
}

fn tier_in(folder: &Path) -> PathBuf {
    folder.join("disk.tier")
}

/// MiB that a disk's file takes.
fn taken(folder: &Path) -> u64 {
    std::fs::metadata(tier_in(folder)).unwrap().blocks() * 512 / MIB
}

/// Those of which nothing is on disk, nor in memory.
fn lost(store: &BlockStore, specs: &[SegmentSpec]) -> Vec<SegmentSpec> {
    specs.iter().filter(|spec| wait(load_and_check(store, spec, all(spec))) == 0).copied().collect()
}

fn are_on_disk(store: &BlockStore, specs: &[SegmentSpec]) -> bool {
    specs.iter().all(|spec| store.held(spec.id).disk_bytes == MIB)
}

#[test]
fn blocks_are_spread_by_room_and_come_back_wherever_they_are() {
    let folder = folder();
    let specs = specs(36);
    let store = on_disks(folder.path(), 48 * MIB, &[("other", 24 * MIB)]);
    assert_eq!(store.usage().disk.capacity_bytes, 72 * MIB);
    fill_each(&store, &specs);
    assert!(are_on_disk(&store, &specs));
    let (own, other) = (taken(&folder.path().join("own")), taken(&folder.path().join("other")));
    assert!(own >= 12 && other >= 4 && own + other >= 36, "{own} and {other} MiB");
    assert!(lost(&store, &specs).is_empty());
    assert!(store.usage().disk.used_bytes >= 36 * MIB && store.usage().warnings.is_empty());
    // A tier that is full on all disks goes on by eviction on each.
    let more: Vec<_> = (100..180).map(|number| spec(number, MIB as u32)).collect();
    fill_each(&store, &more);
    let usage = store.usage().disk;
    assert!(usage.used_bytes <= usage.capacity_bytes && usage.used_bytes > 60 * MIB, "{usage:?}");
}

#[test]
fn a_restart_finds_each_disk_s_blocks_in_any_order_without_one_and_with_a_new_one() {
    let folder = folder();
    let specs = specs(30);
    let store = on_disks(folder.path(), 64 * MIB, &[("a", 64 * MIB), ("b", 64 * MIB)]);
    fill_each(&store, &specs);
    wait(store.close());
    drop(store);

    let store = on_disks(folder.path(), 64 * MIB, &[("b", 64 * MIB), ("a", 64 * MIB)]);
    assert!(are_on_disk(&store, &specs) && lost(&store, &specs).is_empty(), "another order");
    wait(store.close());
    drop(store);

    // Its disk is not mounted.
    std::fs::rename(folder.path().join("b"), folder.path().join("away")).unwrap();
    let store = BlockStore::open(settings(folder.path(), 64 * MIB, &[("a", 64 * MIB), ("b", 64 * MIB)])).unwrap();
    assert!(!folder.path().join("b").exists(), "what is not there is not made");
    let usage = store.usage();
    assert_eq!((usage.disks_out, usage.warnings.len(), usage.disk.capacity_bytes), (1, 1, 128 * MIB));
    assert!(usage.warnings[0].contains("is left out") && usage.warnings[0].contains("mount its disk"), "{:?}", usage.warnings);
    let missing = lost(&store, &specs);
    assert!(!missing.is_empty() && missing.len() < 30, "{} of 30", missing.len());
    fill_each(&store, &missing[1..]);
    wait(store.close());
    drop(store);

    // It is back, with what lies on other disks by now.
    std::fs::rename(folder.path().join("away"), folder.path().join("b")).unwrap();
    let store = on_disks(folder.path(), 64 * MIB, &[("c", 64 * MIB), ("a", 64 * MIB), ("b", 64 * MIB)]);
    assert!(are_on_disk(&store, &specs) && lost(&store, &specs).is_empty(), "the one that was not fetched again is there, too");
    let usage = store.usage();
    assert_eq!((usage.disks_out, usage.segments), (0, 30));
    assert!(usage.disk.used_bytes < 31 * MIB, "each is there once: {}", usage.disk.used_bytes);
    assert!(taken(&folder.path().join("b")) <= 1, "the room of the others was given back");
}

#[test]
fn a_disk_whose_files_can_t_be_opened_is_left_out() {
    let folder = folder();
    std::fs::create_dir_all(tier_in(&folder.path().join("one"))).unwrap();
    let store = on_disks(folder.path(), 16 * MIB, &[("one", 16 * MIB), ("two", 16 * MIB)]);
    let usage = store.usage();
    assert_eq!((usage.disks_out, usage.disk.capacity_bytes), (1, 32 * MIB));
    assert!(usage.warnings.len() == 1 && usage.warnings[0].contains("one is left out"), "{:?}", usage.warnings);
    let specs = specs(8);
    fill_each(&store, &specs);
    assert!(are_on_disk(&store, &specs) && lost(&store, &specs).is_empty());
}

#[test]
fn a_disk_that_can_t_be_read_is_forgotten_and_the_others_go_on() {
    let folder = folder();
    let specs = specs(40);
    let store = on_disks(folder.path(), 64 * MIB, &[("other", 64 * MIB)]);
    fill_each(&store, &specs);
    // Every read of a descriptor that is open for writing only fails.
    replace(&tier_in(&folder.path().join("other")), &File::options().write(true).open("/dev/null").unwrap());
    let gone = lost(&store, &specs);
    let usage = store.usage();
    assert!(gone.len() >= 4 && gone.len() < 36, "{} of 40", gone.len());
    assert_eq!((usage.disks_out, usage.warnings.len()), (1, 1), "{:?}", usage.warnings);
    assert!(
        usage.warnings[0].contains("disk tier in ") && usage.warnings[0].contains("reading is paused"),
        "{:?}",
        usage.warnings
    );
    let began = forebay_runtime::now();
    while gone.iter().any(|spec| store.held(spec.id).disk_bytes > 0) {
        assert!(began.elapsed() < Duration::from_secs(10), "what it held is forgotten");
        std::thread::sleep(Duration::from_millis(5));
    }
    for spec in &gone {
        fill(&store, spec, all(spec)).unwrap();
        check(&store, spec, all(spec));
    }
    wait(store.flush());
    wait(store.flush());
    assert!(are_on_disk(&store, &gone), "they lie on the disk that works");
    let there = specs.iter().filter(|spec| !gone.contains(spec)).copied().collect::<Vec<_>>();
    assert!(lost(&store, &there).is_empty(), "the other disk goes on");
}

#[test]
fn a_disk_that_is_full_leaves_what_comes_to_the_others() {
    let folder = folder();
    let specs = specs(24);
    let store = on_disks(folder.path(), 64 * MIB, &[("other", 64 * MIB)]);
    fill_each(&store, &specs[..4]);
    replace(&tier_in(&folder.path().join("other")), &File::options().read(true).write(true).open("/dev/full").unwrap());
    fill_each(&store, &specs[4..]);
    wait(store.flush());
    assert!(are_on_disk(&store, &specs[4..]), "all of it is on disk");
    let usage = store.usage();
    assert!(usage.warnings[0].contains("writing is paused") && usage.warnings[0].contains("space"), "{:?}", usage.warnings);
    assert_eq!(usage.disks_out, 1);
}

#[test]
fn a_tier_beyond_its_file_system_is_told_of_and_used() {
    let folder = folder();
    let specs = specs(4);
    let store = on_disks(folder.path(), 100 << 40, &[("other", 64 * MIB)]);
    let usage = store.usage();
    assert!(usage.warnings.len() == 1 && usage.warnings[0].contains("it may take 100 TiB"), "{:?}", usage.warnings);
    assert_eq!(usage.disks_out, 0, "it is no disk that fails");
    fill_each(&store, &specs);
    assert!(are_on_disk(&store, &specs));
}

#[test]
fn temporary_blocks_go_to_a_disk_that_takes_them_and_are_lost_with_it() {
    let folder = folder();
    let store = on_disks(folder.path(), 64 * MIB, &[("other", 64 * MIB)]);
    let temporary = |number: u64| SegmentSpec { owner: Owner::Temporary, keep: true, ..spec(number, MIB as u32) };
    let put = |number: u64| wait(store.write_to_disk(temporary(number), Bytes::from(vec![number as u8; MIB as usize])));
    let read = |number: u64| wait(store.read_from_disk(temporary(number).id, run(0, 256))).unwrap();
    (0..16).for_each(|number| put(number).unwrap());
    assert!((0..16).all(|number| read(number).unwrap()[..] == vec![number as u8; MIB as usize][..]));
    let other = tier_in(&folder.path().join("other"));
    replace(&other, &File::options().write(true).open("/dev/null").unwrap());
    let left = (0..16).filter(|number| read(*number).is_some()).count();
    assert!((2..=14).contains(&left), "{left} of 16");
    // Blocks that are put now lie where they can be read.
    (16..24).for_each(|number| put(number).unwrap());
    assert!((16..24).all(|number| read(number).is_some()));
    wait(store.flush());
    // Whoever counts them gives all back.
    assert!((0..24).all(|number| store.free(temporary(number).id) > 0));
}

#[test]
fn temporary_data_that_a_disk_does_not_give_stays_counted() {
    let folder = folder();
    let store = on_disks(folder.path(), 64 * MIB, &[]);
    let specs: Vec<_> = specs(16).into_iter().map(|spec| SegmentSpec { owner: Owner::Temporary, keep: true, ..spec }).collect();
    fill_each(&store, &specs);
    replace(&tier_in(&folder.path().join("own")), &File::options().write(true).open("/dev/null").unwrap());
    let gone = lost(&store, &specs);
    assert!(gone.len() >= 4, "{} of 16", gone.len());
    assert!(gone.iter().all(|spec| store.free(spec.id) > 0), "whoever counts them gives all back");
}

#[test]
fn temporary_blocks_pass_by_a_disk_without_space() {
    let folder = folder();
    let store = on_disks(folder.path(), 0, &[("one", 64 * MIB), ("two", 64 * MIB)]);
    assert!(store.has_disk() && store.lend().is_none(), "nothing lies in the store's own folder");
    replace(&tier_in(&folder.path().join("two")), &File::options().read(true).write(true).open("/dev/full").unwrap());
    let temporary = |number: u64| SegmentSpec { owner: Owner::Temporary, keep: true, ..spec(number, MIB as u32) };
    for number in 0..12 {
        wait(store.write_to_disk(temporary(number), Bytes::from(vec![7; MIB as usize]))).unwrap();
        assert!(wait(store.read_from_disk(temporary(number).id, run(0, 256))).unwrap().is_some());
    }
}

#[test]
fn a_folder_is_named_once_and_is_one_store_s() {
    let folder = folder();
    std::fs::create_dir_all(folder.path().join("a")).unwrap();
    let refused = |settings: StoreSettings| BlockStore::open(settings).map(|_| ()).unwrap_err();
    for named in [&[("a", MIB), ("a", MIB)][..], &[("own", MIB)][..], &[("a", 1)][..]] {
        let error = refused(settings(folder.path(), MIB, named));
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    std::os::unix::fs::symlink(folder.path().join("a"), folder.path().join("link")).unwrap();
    assert!(refused(settings(folder.path(), MIB, &[("a", MIB), ("link", MIB)])).message().contains("named twice"));
    let store = on_disks(folder.path(), MIB, &[("a", MIB)]);
    let second = StoreSettings::new(folder.path().join("second"), 8 * MIB).with_disk_folder(folder.path().join("a"), MIB);
    assert!(refused(second.clone()).message().contains("in use by another process"));
    drop(store);
    BlockStore::open(second).unwrap();
}
