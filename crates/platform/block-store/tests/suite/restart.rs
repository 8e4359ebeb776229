//! What comes back after a restart, a copy of the folder at any moment, a smaller tier: right bytes or none.

use std::path::Path;

use forebay_block_store::SegmentSpec;

use crate::support::*;

#[test]
fn a_restart_comes_back_warm() {
    let folder = folder();
    let kept = SegmentSpec { keep: true, ..spec(1, 5 * MIB as u32 + 17) };
    let part = spec(2, 64 << 20);
    let freed = spec(3, MIB as u32);
    let small: Vec<_> = (100..300).map(|number| spec(number, 50_000)).collect();
    {
        let store = with_disk(folder.path(), 32 * MIB, 64 * MIB);
        fill(&store, &kept, all(&kept)).unwrap();
        fill(&store, &part, run(1000, 1300)).unwrap();
        fill(&store, &part, run(1, 2)).unwrap();
        fill(&store, &freed, all(&freed)).unwrap();
        small.iter().for_each(|spec| fill(&store, spec, all(spec)).unwrap());
        wait(store.flush());
        store.free(freed.id);
        wait(store.close());
    }
    let store = with_disk(folder.path(), 32 * MIB, 64 * MIB);
    let usage = store.usage();
    assert_eq!((usage.segments, usage.warnings.len()), (202, 0));
    assert!(usage.disk.kept_bytes >= 5 * MIB && usage.dram.by_owner.iter().all(|(_, bytes)| *bytes == 0));
    assert_eq!(store.state(part.id, run(0, 1301)).disk, [run(1, 2), run(1000, 1300)]);
    assert!(store.held(kept.id).keep);
    wait(async {
        assert_eq!(load_and_check(&store, &kept, all(&kept)).await, all(&kept).len);
        assert_eq!(load_and_check(&store, &part, run(0, 1301)).await, 301);
        assert_eq!(load_and_check(&store, &freed, all(&freed)).await, 0);
        for spec in &small {
            assert_eq!(load_and_check(&store, spec, all(spec)).await, 13);
        }
    });
    // What was recovered is worked with like anything else.
    fill(&store, &freed, all(&freed)).unwrap();
    wait(store.flush());
    assert_eq!(store.held(freed.id).disk_bytes, MIB);
    assert!(store.free(kept.id) > 0 && !store.held(kept.id).keep);
}

#[test]
fn a_copy_of_the_folder_taken_at_any_moment_gives_right_bytes_or_none() {
    let (folder, store) = on_disk(8 * MIB, 12 * MIB);
    let specs: Vec<_> = (0..40).map(|number| spec(number, 700_000 + 4096 * number as u32)).collect();
    let mut warm = 0;
    for (step, spec) in specs.iter().enumerate() {
        fill(&store, spec, all(spec)).unwrap();
        if step % 7 == 3 {
            store.free(specs[step - 2].id);
        }
        if step % 10 == 9 {
            let copy = self::folder();
            copy_folder(folder.path(), copy.path());
            let copied = with_disk(copy.path(), 8 * MIB, 12 * MIB);
            for spec in &specs {
                warm += wait(load_and_check(&copied, spec, all(spec)));
            }
        }
    }
    assert!(warm > 256, "some of it comes back: {warm} pages");
}

#[test]
fn dropping_the_store_without_closing_loses_no_more_than_what_was_not_written() {
    let folder = folder();
    let (early, late) = (spec(1, 2 * MIB as u32), spec(2, 2 * MIB as u32));
    {
        let store = with_disk(folder.path(), 16 * MIB, 16 * MIB);
        fill(&store, &early, all(&early)).unwrap();
        wait(store.flush());
        fill(&store, &late, all(&late)).unwrap();
    }
    let store = with_disk(folder.path(), 16 * MIB, 16 * MIB);
    assert_eq!(wait(load_and_check(&store, &early, all(&early))), 512);
    wait(load_and_check(&store, &late, all(&late)));
}

#[test]
fn what_was_freed_does_not_come_back() {
    let folder = folder();
    let spec = spec(1, 2 * MIB as u32);
    for _ in 0..5 {
        let store = with_disk(folder.path(), 16 * MIB, 16 * MIB);
        fill(&store, &spec, all(&spec)).unwrap();
        wait(store.flush());
        store.free(spec.id);
        drop(store);
        assert_eq!(with_disk(folder.path(), 16 * MIB, 16 * MIB).segments(), []);
    }
}

#[test]
fn a_smaller_tier_takes_what_fits() {
    let folder = folder();
    let specs: Vec<_> = (0..20).map(|number| spec(number, MIB as u32)).collect();
    {
        let store = with_disk(folder.path(), 32 * MIB, 32 * MIB);
        specs.iter().for_each(|spec| fill(&store, spec, all(spec)).unwrap());
        wait(store.close());
    }
    let store = with_disk(folder.path(), 32 * MIB, 8 * MIB);
    let disk = store.usage().disk;
    assert!(disk.used_bytes <= 8 * MIB && disk.used_bytes > 6 * MIB, "{disk:?}");
    let there: u32 = specs.iter().map(|spec| wait(load_and_check(&store, spec, all(spec)))).sum();
    assert!(there >= 6 * 256);
}

#[test]
fn space_that_nothing_in_the_index_claims_is_given_back() {
    let folder = folder();
    {
        let store = with_disk(folder.path(), 32 * MIB, 32 * MIB);
        let spec = spec(1, 10 * MIB as u32);
        fill(&store, &spec, all(&spec)).unwrap();
        wait(store.close());
    }
    std::fs::remove_file(folder.path().join("disk.index")).unwrap();
    let store = with_disk(folder.path(), 32 * MIB, 32 * MIB);
    assert_eq!(store.usage().disk.used_bytes, 0);
    use std::os::unix::fs::MetadataExt;
    let taken = std::fs::metadata(folder.path().join("disk.tier")).unwrap().blocks() * 512;
    assert!(taken < MIB, "{taken} bytes are still taken");
}

fn copy_folder(from: &Path, to: &Path) {
    for name in ["disk.index", "disk.sums", "disk.tier"] {
        // The index first: what it says is older than the data, as after a crash it may be.
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// Segments had other ids then, which nobody asks for any more.
#[test]
fn a_folder_of_version_1_comes_back_empty() {
    let folder = folder();
    let one = spec(1, MIB as u32);
    {
        let store = with_disk(folder.path(), 32 * MIB, 64 * MIB);
        fill(&store, &one, all(&one)).unwrap();
        wait(store.flush());
        wait(store.close());
    }
    let (version, index) = (folder.path().join("version"), folder.path().join("disk.index"));
    let mut bytes = std::fs::read(&index).unwrap();
    assert!(bytes.len() > 40, "more than a header");
    bytes[16] = 1;
    let sum = forebay_types::crc32c(&bytes[4..40]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&index, bytes).unwrap();
    std::fs::write(&version, "forebay block store 1\n").unwrap();
    let store = with_disk(folder.path(), 32 * MIB, 64 * MIB);
    assert_eq!((store.usage().segments, store.usage().disk.used_bytes), (0, 0));
    assert_eq!(std::fs::read_to_string(&version).unwrap(), "forebay block store 2\n");
}
