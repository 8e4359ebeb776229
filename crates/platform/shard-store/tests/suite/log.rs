//! The log: group commit, torn ends, damage.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_shard_store::LocalLog;
use forebay_types::ErrorKind;

fn entries(folder: &Path, from: u64) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    LocalLog::read(folder, from, &mut |number, entry| {
        all.push((number, entry.to_vec()));
        Ok(())
    })
    .unwrap();
    all
}

fn part(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("log-{first:016x}"))
}

#[test]
fn entries_of_many_threads_are_numbered_without_gaps_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(LocalLog::open(folder.path(), 1).unwrap());
    let threads: Vec<_> = (0..8u8)
        .map(|thread| {
            let log = log.clone();
            std::thread::spawn(move || {
                (0..50u8).map(|n| (log.append(&[thread, n]).unwrap(), vec![thread, n])).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut told: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    told.sort();
    assert_eq!(told.len(), 400);
    assert!(told.iter().zip(1..).all(|((number, _), expected)| *number == expected));
    assert_eq!(entries(folder.path(), 1), told);
    drop(log);
    let log = LocalLog::open(folder.path(), 1).unwrap();
    assert_eq!(log.append(b"after").unwrap(), 401);
    assert_eq!(entries(folder.path(), 400)[1], (401, b"after".to_vec()));
}

#[test]
fn parts_are_forgotten_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let log = LocalLog::open(folder.path(), 1).unwrap();
    for n in 0..10u8 {
        log.append(&[n]).unwrap();
        if n % 4 == 3 {
            log.roll().unwrap();
            // Nothing was appended since: the part is there already.
            log.roll().unwrap();
        }
    }
    log.forget(8).unwrap();
    assert!(!part(folder.path(), 1).exists() && part(folder.path(), 5).exists() && part(folder.path(), 9).exists());
    assert_eq!(entries(folder.path(), 6).len(), 5);
    log.forget(9).unwrap();
    assert_eq!(entries(folder.path(), 9).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [9, 10]);
}

#[test]
fn a_torn_end_is_cut_at_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let log = LocalLog::open(folder.path(), 1).unwrap();
    log.append(b"first").unwrap();
    let whole = std::fs::metadata(part(folder.path(), 1)).unwrap().len();
    log.append(b"second").unwrap();
    drop(log);
    let bytes = std::fs::read(part(folder.path(), 1)).unwrap();
    for cut in 0..bytes.len() {
        std::fs::write(part(folder.path(), 1), &bytes[..cut]).unwrap();
        let kept = if cut < whole as usize { 0 } else { 1 };
        assert_eq!(entries(folder.path(), 1).len(), kept, "cut at {cut}");
        let log = LocalLog::open(folder.path(), 1).unwrap();
        assert_eq!(log.append(b"next").unwrap(), kept as u64 + 1);
        assert_eq!(entries(folder.path(), 1).len(), kept + 1, "cut at {cut}");
    }
}

#[test]
fn damage_before_the_end_is_an_error_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let log = LocalLog::open(folder.path(), 1).unwrap();
    log.append(b"first").unwrap();
    log.append(b"second").unwrap();
    drop(log);
    let path = part(folder.path(), 1);
    let good = std::fs::read(&path).unwrap();
    // Every byte of the header and of the first frame.
    for at in 0..24 + 20 + 4 + 5 {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        let error = LocalLog::read(folder.path(), 1, &mut |_, _| Ok(())).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "byte {at}: {error}");
        assert!(error.message().contains(path.to_str().unwrap()), "{error}");
        assert!(LocalLog::open(folder.path(), 1).is_err(), "byte {at}");
    }
}

#[test]
fn a_missing_part_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let log = LocalLog::open(folder.path(), 1).unwrap();
    for _ in 0..3 {
        log.append(b"entry").unwrap();
        log.roll().unwrap();
    }
    std::fs::remove_file(part(folder.path(), 2)).unwrap();
    assert_eq!(LocalLog::read(folder.path(), 1, &mut |_, _| Ok(())).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn bytes_behind_the_end_that_are_no_frame_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let log = LocalLog::open(folder.path(), 1).unwrap();
    log.append(b"first").unwrap();
    drop(log);
    OpenOptions::new().append(true).open(part(folder.path(), 1)).unwrap().write_all(&[7; 100]).unwrap();
    assert_eq!(entries(folder.path(), 1).len(), 1);
}
