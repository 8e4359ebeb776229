//! Files that are not what they were: an error with the path, never a wrong answer.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use forebay_shard::{Key, at_hand};
use forebay_shard_store::{Condition, Literal, Store, Test, pack};
use forebay_types::ErrorKind;
use rand::Rng;

use crate::support::*;

fn error(path: &Path) -> forebay_types::Error {
    Store::open(path).err().unwrap()
}

#[test]
fn a_flipped_bit_in_any_file_is_an_error_with_the_path() {
    let (_folder, path, _) = built(1, 300, 2.5);
    let mut random = random(2);
    let mut seen = 0;
    for entry in std::fs::read_dir(&path).unwrap() {
        let file = entry.unwrap().path();
        if file.ends_with("lock") || file.file_name().unwrap().to_string_lossy().starts_with("log-") {
            continue;
        }
        let good = std::fs::read(&file).unwrap();
        for _ in 0..8 {
            let mut bytes = good.clone();
            let at = random.random_range(0..bytes.len());
            bytes[at] ^= 1 << random.random_range(0..8);
            std::fs::write(&file, &bytes).unwrap();
            // Bytes between sections carry no meaning; the rest is under checksums.
            if let Err(error) = Store::open(&path).and_then(|store| store.verify()) {
                assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{file:?} byte {at}: {error}");
                assert!(error.message().contains(path.to_str().unwrap()), "{error}");
                seen += 1;
            } else {
                assert!(!file.ends_with("manifest"), "byte {at}");
            }
        }
        std::fs::write(&file, &good[..good.len() - 1]).unwrap();
        let name = file.to_str().unwrap().to_string();
        assert!(error(&path).message().contains(&name), "{}", error(&path));
        std::fs::remove_file(&file).unwrap();
        assert!(error(&path).message().contains(path.to_str().unwrap()), "{}", error(&path));
        std::fs::write(&file, &good).unwrap();
        Store::open(&path).unwrap();
    }
    assert!(seen > 40, "{seen}");
}

/// Flips a bit in the middle of a section of the base, in place as a disk does it. Gives the base's path.
fn damage(path: &Path, section: usize) -> PathBuf {
    let mut files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let base = files.find(|file| file.file_name().unwrap().to_str().unwrap().starts_with("base-")).unwrap();
    let bytes = std::fs::read(&base).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let middle = number(48 + section * 24) + number(56 + section * 24) / 2;
    let file = std::fs::File::options().write(true).open(&base).unwrap();
    file.write_all_at(&[bytes[middle as usize] ^ 1], middle).unwrap();
    base
}

#[test]
fn damage_of_a_base_is_found_where_it_is_used_and_named() {
    let (_folder, path, all) = built(1, 300, 0.01);
    // What keys are kept by stays whole; the payload of psi does not.
    let base = damage(&path, 6);
    let store = Store::open(&path).unwrap();
    let (first, last) = (all.keys().next().unwrap(), all.keys().last().unwrap());
    assert!(store.damage().is_none(), "nothing was used yet");
    assert_eq!(store.get(&Key::U64(u64::MAX / 2), None).unwrap(), None, "keys tell that there is no such record");
    assert!(store.damage().is_none());
    let condition = Condition::Column { column: "word".into(), test: Test::Contains(Literal::Text("a".into())) };
    for error in [
        store.get(first, None).unwrap_err(),
        store.get(last, None).unwrap_err(),
        store.search(&condition, None, None).unwrap_err(),
        store.count(&condition).unwrap_err(),
        store.verify().unwrap_err(),
        store.damage().unwrap(),
        pack(&path).err().unwrap(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains(base.to_str().unwrap()), "{error}");
        assert!(error.message().contains("section 6") && error.message().contains("from byte "), "{error}");
    }
}

#[test]
fn keys_are_verified_ahead_for_who_may_not_wait() {
    let (_folder, path, all) = built(1, 300, 0.01);
    let (store, key) = (Store::open(&path).unwrap(), all.keys().next().unwrap());
    assert!(at_hand(|| store.contains(key)).is_none());
    store.verify_keys().unwrap();
    assert!(at_hand(|| store.contains(key)).unwrap().unwrap());
    assert!(at_hand(|| store.get(key, None)).is_none(), "of records nothing is verified by that");
    let verified = store.verified();
    store.get(key, None).unwrap();
    let by_then = store.verified();
    assert_ne!(by_then, verified, "that get took longer than the next one");
    store.get(key, None).unwrap();
    assert_eq!(store.verified(), by_then);
}

#[test]
fn what_has_verified_is_verified_in_another_opening_of_the_folder() {
    let (_folder, path, all) = built(1, 300, 0.01);
    let before = Store::open(&path).unwrap();
    before.verify().unwrap();
    damage(&path, 6);
    let (again, anew) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
    again.adopt_verified(&before);
    again.verify().unwrap();
    assert!(anew.get(all.keys().next().unwrap(), None).is_err(), "nobody has told this one");
}

#[test]
fn what_is_no_shard_and_what_is_newer_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let missing = error(&folder.path().join("missing"));
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(error(folder.path()).message().contains("not a shard"));
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(error(&file).message().contains("not a shard"), "{}", error(&file));
    // It is not touched either.
    assert!(Store::open_to_change(folder.path()).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    let path = folder.path().join("x.shard");
    build(&path, &records(&mut random(1), 10), 0.8);
    let manifest = path.join("manifest");
    let bytes = std::fs::read(&manifest).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let checksum = forebay_types::crc32c_append(forebay_types::crc32c(b"3"), &bytes[end + 1..]);
    let newer = [format!("forebay-shard 3 {checksum:08x}\n").as_bytes(), &bytes[end + 1..]].concat();
    std::fs::write(&manifest, newer).unwrap();
    assert!(error(&path).message().contains("newer"), "{}", error(&path));
}
