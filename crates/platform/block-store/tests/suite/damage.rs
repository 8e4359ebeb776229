//! Bytes that change on disk: pages are dropped and fetched again, and never is a wrong one given.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::support::*;

/// Fills a few segments, closes, damages, opens again.
fn closed_store(folder: &Path) -> Vec<forebay_block_store::SegmentSpec> {
    let specs: Vec<_> = (0..8).map(|number| spec(number, MIB as u32)).collect();
    let store = with_disk(folder, 16 * MIB, 16 * MIB);
    for spec in &specs {
        fill(&store, spec, all(spec)).unwrap();
        wait(store.flush());
    }
    wait(store.close());
    specs
}

fn pages_there(folder: &Path, specs: &[forebay_block_store::SegmentSpec]) -> Vec<u32> {
    let store = with_disk(folder, 16 * MIB, 16 * MIB);
    specs.iter().map(|spec| wait(load_and_check(&store, spec, all(spec)))).collect()
}

fn flip(path: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    byte[0] ^= 1;
    file.write_all_at(&byte, at).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_damaged_page_is_dropped_and_filled_again() {
    let folder = folder();
    let specs = closed_store(folder.path());
    flip(&folder.path().join("disk.tier"), 2 * MIB + 5 * PAGE as u64 + 99);
    let store = with_disk(folder.path(), 16 * MIB, 16 * MIB);
    let spec = &specs[2];
    assert_eq!(wait(load_and_check(&store, spec, all(spec))), 255);
    assert_eq!(store.state(spec.id, all(spec)).missing, [run(5, 6)]);
    assert_eq!(store.held(spec.id).disk_bytes, MIB - PAGE as u64);
    fill(&store, spec, run(5, 6)).unwrap();
    check(&store, spec, all(spec));
    wait(store.close());
    drop(store);
    assert_eq!(pages_there(folder.path(), &specs), [256; 8]);
}

#[test]
fn pages_of_another_segment_do_not_verify_in_its_place() {
    let folder = folder();
    let specs = closed_store(folder.path());
    // Blocks 0 and 1 change places, checksums and all: each page is whole, and of the wrong segment.
    for (name, len) in [("disk.tier", MIB), ("disk.sums", 1024)] {
        let file = File::options().read(true).write(true).open(folder.path().join(name)).unwrap();
        let (mut first, mut second) = (vec![0; len as usize], vec![0; len as usize]);
        file.read_exact_at(&mut first, 0).unwrap();
        file.read_exact_at(&mut second, len).unwrap();
        file.write_all_at(&second, 0).unwrap();
        file.write_all_at(&first, len).unwrap();
        file.sync_all().unwrap();
    }
    assert_eq!(pages_there(folder.path(), &specs), [0, 0, 256, 256, 256, 256, 256, 256]);
}

#[test]
fn damaged_checksums_cost_pages_not_answers() {
    let folder = folder();
    let specs = closed_store(folder.path());
    flip(&folder.path().join("disk.sums"), 4 * (3 * 256 + 7));
    assert_eq!(pages_there(folder.path(), &specs), [256, 256, 256, 255, 256, 256, 256, 256]);
    File::options().write(true).open(folder.path().join("disk.sums")).unwrap().set_len(0).unwrap();
    assert_eq!(pages_there(folder.path(), &specs), [0; 8]);
}

#[test]
fn a_torn_or_damaged_index_loses_what_its_records_said() {
    let folder = folder();
    let specs = closed_store(folder.path());
    let index = folder.path().join("disk.index");
    let good = std::fs::read(&index).unwrap();
    assert_eq!(good.len() % 40, 0);
    // Any one damaged record: the others still count.
    for record in 1..good.len() / 40 {
        let copy = self::folder();
        for name in ["disk.tier", "disk.sums"] {
            std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
        }
        let mut damaged = good.clone();
        damaged[record * 40 + 17] ^= 0x40;
        std::fs::write(copy.path().join("disk.index"), &damaged).unwrap();
        let there = pages_there(copy.path(), &specs).iter().sum::<u32>();
        assert!(there >= 7 * 256, "record {record}: {there} pages");
    }
    // Cut within the last record, whatever it is; then with garbage after the end.
    std::fs::write(&index, &good[..good.len() - 13]).unwrap();
    let lost: u32 = 8 * 256 - pages_there(folder.path(), &specs).iter().sum::<u32>();
    assert!(lost <= 256, "{lost} pages lost with one record");
    std::fs::write(&index, [good.as_slice(), &[0xa5; 1000]].concat()).unwrap();
    let there = pages_there(folder.path(), &specs).iter().sum::<u32>();
    assert!(there >= 8 * 256 - lost);
    // No header, no index.
    flip(&index, 10);
    assert_eq!(pages_there(folder.path(), &specs), [0; 8]);
}

#[test]
fn a_truncated_data_file_is_so_many_missing_pages() {
    let folder = folder();
    let specs = closed_store(folder.path());
    let tier = File::options().write(true).open(folder.path().join("disk.tier")).unwrap();
    tier.set_len(4 * MIB + 100).unwrap();
    let there = pages_there(folder.path(), &specs);
    assert_eq!(there, [256, 256, 256, 256, 0, 0, 0, 0]);
}
