//! What goes and what stays when tiers are full, with scans, keep flags and room that nobody can give.

use forebay_block_store::SegmentSpec;
use forebay_types::ErrorKind;

use crate::support::*;

#[test]
fn a_scan_of_four_times_the_tier_leaves_the_hot_set_alone() {
    let (_folder, store) = in_dram(32 * MIB);
    let hot: Vec<SegmentSpec> = (0..4).map(|number| spec(number, 5 * MIB as u32)).collect();
    for spec in &hot {
        fill(&store, spec, all(spec)).unwrap();
        // Read whole three times, in steps.
        for step in (0..1280).step_by(16).cycle().take(3 * 80) {
            assert!(store.pin(spec.id, run(step, step + 16)).is_some());
        }
    }
    for number in 100..228 {
        let spec = spec(number, MIB as u32);
        fill(&store, &spec, all(&spec)).unwrap();
        // The scan reads what it fetched, in steps, once.
        for step in (0..256).step_by(16) {
            assert!(store.pin(spec.id, run(step, step + 16)).is_some());
        }
    }
    for spec in &hot {
        check(&store, spec, all(spec));
    }
    let usage = store.usage();
    assert!(usage.dram.used_bytes <= usage.dram.capacity_bytes);
    assert!(usage.dram.used_bytes > 30 * MIB, "the rest is used all the same: {}", usage.dram.used_bytes);
}

#[test]
fn uses_counted_elsewhere_count() {
    let (_folder, store) = in_dram(16 * MIB);
    let spec_of = |number| spec(number, MIB as u32);
    (0..10).for_each(|number| fill(&store, &spec_of(number), run(0, 256)).unwrap());
    store.touch(id(0), None, 2);
    store.touch(id(1), Some(run(0, 1)), 1);
    store.touch(id(999), None, 1);
    (100..150).for_each(|number| fill(&store, &spec_of(number), run(0, 256)).unwrap());
    check(&store, &spec_of(0), run(0, 256));
    check(&store, &spec_of(1), run(0, 256));
    assert!((2..10).all(|number| store.pin(id(number), run(0, 256)).is_none()));
}

#[test]
fn a_block_that_comes_back_soon_is_taken_for_hot() {
    let (_folder, store) = in_dram(16 * MIB);
    let spec_of = |number| spec(number, MIB as u32);
    (0..20).for_each(|number| fill(&store, &spec_of(number), run(0, 256)).unwrap());
    assert!(store.pin(id(0), run(0, 1)).is_none(), "evicted");
    fill(&store, &spec_of(0), run(0, 256)).unwrap();
    (100..150).for_each(|number| fill(&store, &spec_of(number), run(0, 256)).unwrap());
    check(&store, &spec_of(0), run(0, 256));
}

#[test]
fn kept_segments_are_not_evicted_and_room_that_is_all_kept_is_no_room() {
    let (_folder, store) = in_dram(8 * MIB);
    let kept = SegmentSpec { keep: true, ..spec(1, 3 * MIB as u32) };
    fill(&store, &kept, all(&kept)).unwrap();
    let later = spec(2, 3 * MIB as u32);
    fill(&store, &later, all(&later)).unwrap();
    assert!(store.set_keep(later.id, true));
    assert!(!store.set_keep(id(77), true));
    assert_eq!(store.usage().dram.kept_bytes, 6 * MIB);
    for number in 10..30 {
        let spec = spec(number, MIB as u32);
        fill(&store, &spec, all(&spec)).unwrap();
    }
    check(&store, &kept, all(&kept));
    check(&store, &later, all(&later));
    assert!(store.held(kept.id).keep);
    let large = spec(50, 3 * MIB as u32);
    assert_eq!(fill(&store, &large, all(&large)).unwrap_err().kind(), ErrorKind::Retry);
    assert!(store.set_keep(kept.id, false));
    fill(&store, &large, all(&large)).unwrap();
    assert!(store.held(kept.id).dram_bytes < 3 * MIB);
    store.free(later.id);
    assert_eq!(store.usage().dram.kept_bytes, 0, "free drops kept segments too");
    assert!(store.set_keep(large.id, true) && store.set_keep(large.id, false));
    for number in 60..80 {
        let spec = spec(number, MIB as u32);
        fill(&store, &spec, all(&spec)).unwrap();
    }
    assert_eq!(store.held(large.id).bytes + store.held(kept.id).bytes, 0, "what is kept no longer goes like anything else");
}

#[test]
fn kept_blocks_may_leave_dram_when_the_disk_has_them_and_stay_there() {
    let (_folder, store) = on_disk(4 * MIB, 16 * MIB);
    let kept = SegmentSpec { keep: true, ..spec(1, 3 * MIB as u32) };
    fill(&store, &kept, all(&kept)).unwrap();
    wait(store.flush());
    for number in 10..60 {
        let spec = spec(number, MIB as u32);
        fill(&store, &spec, all(&spec)).unwrap();
        wait(store.flush());
    }
    let held = store.held(kept.id);
    assert_eq!((held.disk_bytes, held.bytes), (3 * MIB, 3 * MIB));
    assert!(held.dram_bytes < 3 * MIB);
    assert_eq!(wait(load_and_check(&store, &kept, run(0, 512))), 512);
    let disk = store.usage().disk;
    assert!(disk.used_bytes <= disk.capacity_bytes && disk.used_bytes > 14 * MIB, "{disk:?}");
}

#[test]
fn addresses_run_out_before_room_does_and_are_had_by_eviction() {
    let (_folder, store) = in_dram(256 * MIB);
    // A terabyte of addresses holds 16,384 segments of 64 MiB; one page of each is all that is there.
    let count = 16_384 + 100;
    for number in 0..count {
        fill(&store, &spec(number, 64 << 20), run(9, 10)).unwrap();
    }
    let held = store.segments().len() as u64;
    assert!((16_000..=16_384).contains(&held), "{held}");
    check(&store, &spec(count - 1, 64 << 20), run(9, 10));
}
