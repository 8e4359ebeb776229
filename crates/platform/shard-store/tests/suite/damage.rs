//! Files that are not what they were: an error with the path, never a wrong answer.

use std::path::Path;

use forebay_shard_store::Store;
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
            if let Err(error) = Store::open(&path) {
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
