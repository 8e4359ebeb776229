//! The store's folder: one process at a time, no newer version, and nothing in it for other users.

use std::os::unix::fs::PermissionsExt;

use forebay_block_store::{BlockStore, StoreSettings};
use forebay_types::ErrorKind;

use crate::support::*;

#[test]
fn a_folder_is_held_by_one_store_at_a_time() {
    let folder = folder();
    let settings = StoreSettings::new(folder.path(), MIB).with_disk(MIB);
    let store = BlockStore::open(settings.clone()).unwrap();
    let error = BlockStore::open(settings.clone()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains(folder.path().to_str().unwrap()), "{error}");
    drop(store);
    BlockStore::open(settings).unwrap();
}

#[test]
fn a_folder_of_a_newer_version_is_refused_and_left_alone() {
    let folder = folder();
    drop(with_disk(folder.path(), MIB, MIB));
    let version = folder.path().join("version");
    assert_eq!(std::fs::read_to_string(&version).unwrap(), "forebay block store 2\n");
    std::fs::write(&version, "forebay block store 3\n").unwrap();
    let index = std::fs::read(folder.path().join("disk.index")).unwrap();
    let error = BlockStore::open(StoreSettings::new(folder.path(), MIB).with_disk(MIB)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("newer") && error.message().contains(folder.path().to_str().unwrap()), "{error}");
    assert_eq!(std::fs::read(folder.path().join("disk.index")).unwrap(), index);
    std::fs::write(&version, "something else").unwrap();
    assert_eq!(BlockStore::open(StoreSettings::new(folder.path(), MIB)).err().unwrap().kind(), ErrorKind::Invalid);
}

#[test]
fn bad_settings_are_refused() {
    let folder = folder();
    let good = StoreSettings::new(folder.path(), MIB);
    for bad in [
        StoreSettings { dram_bytes: 1000, ..good.clone() },
        StoreSettings { disk_bytes: 1000, ..good.clone() },
        StoreSettings { in_flight: 0, ..good.clone() },
        StoreSettings { in_place_share: 1.5, ..good.clone() },
    ] {
        assert_eq!(BlockStore::open(bad).err().unwrap().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn other_users_see_nothing_of_the_tiers() {
    let folder = folder();
    let tiers = folder.path().join("tiers");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    // Of an earlier version.
    std::fs::create_dir(&tiers).unwrap();
    std::fs::set_permissions(&tiers, std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(with_disk(&tiers, MIB, MIB));
    assert_eq!((mode(&tiers), mode(&tiers.join("disk.tier"))), (0o700, 0o600));
}
