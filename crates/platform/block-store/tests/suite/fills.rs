//! Pages on their way in: in any pieces, by many at once, given up halfway, accounted to their owner.

use forebay_types::{ErrorKind, Owner};

use crate::support::*;

#[test]
fn bytes_come_back_whatever_the_pieces() {
    let (_folder, store) = in_dram(64 * MIB);
    for (number, bytes) in [1, 4095, 4096, 4097, 50_000, 1 << 20, (1 << 20) + 1, 3_333_333].into_iter().enumerate() {
        let spec = spec(number as u64, bytes);
        fill(&store, &spec, all(&spec)).unwrap();
        check(&store, &spec, all(&spec));
        let state = store.state(spec.id, all(&spec));
        assert_eq!((state.dram, state.disk.len(), state.missing.len()), (vec![all(&spec)], 0, 0));
    }
}

#[test]
fn pages_are_readable_as_soon_as_they_are_complete() {
    let (_folder, store) = in_dram(16 * MIB);
    let spec = spec(1, 10 * PAGE as u32 - 5);
    let bytes = content(&spec, all(&spec));
    let mut fill = store.begin_fill(spec, run(2, 10)).unwrap();
    fill.write(0, &bytes[2 * PAGE..4 * PAGE + 100]).unwrap();
    check(&store, &spec, run(2, 4));
    assert!(store.pin(spec.id, run(2, 5)).is_none(), "a page is invisible until complete");
    assert_eq!(fill.write(0, &[0]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(fill.written(), 2 * PAGE as u64 + 100);
    drop(fill);
    let state = store.state(spec.id, all(&spec));
    assert_eq!((state.dram, state.missing), (vec![run(2, 4)], vec![run(0, 2), run(4, 10)]));
    assert_eq!(store.held(spec.id).dram_bytes, 2 * PAGE as u64);
    assert_eq!(store.usage().dram.used_bytes, 3 * PAGE as u64, "two pages and one of checksums");

    let mut fill = store.begin_fill(spec, run(9, 10)).unwrap();
    assert_eq!(fill.bytes(), PAGE as u64 - 5);
    fill.write(0, &bytes[9 * PAGE..10 * PAGE - 5]).unwrap();
    assert_eq!(fill.write(PAGE as u64 - 5, &[1]).unwrap_err().kind(), ErrorKind::Invalid, "past the segment's end");
    let pinned = fill.finish_pinned().unwrap();
    assert_eq!(&pinned[PAGE - 5..], [0; 5], "zeros after the end");
}

#[test]
fn pages_that_are_held_back_are_readable_together_or_never() {
    let (_folder, store) = on_disk(16 * MIB, 16 * MIB);
    let spec = spec(1, 3 * MIB as u32 - 5);
    let pages = content(&spec, all(&spec));
    let bytes = &pages[..spec.bytes as usize];
    let held_back = || {
        let mut fill = store.begin_fill(spec, all(&spec)).unwrap();
        fill.hold_back().unwrap();
        let (first, rest) = bytes.split_at(2 * MIB as usize + 77);
        fill.write(0, first).unwrap();
        assert!(fill.is_held_back() && store.pin(spec.id, run(0, 1)).is_none(), "it is there, and not to be read");
        (fill, rest)
    };
    let used = || (store.held(spec.id), store.usage().dram.used_bytes, store.resident_bytes().unwrap());
    let before = used();

    // Given up: as if nothing had come, in memory and on disk.
    let (fill, _) = held_back();
    wait(store.flush());
    assert_eq!(store.held(spec.id).bytes, 0);
    drop(fill);
    assert_eq!(used(), before);

    // Freed meanwhile: nobody finds what it brings.
    let (mut fill, rest) = held_back();
    store.free(spec.id);
    fill.write(fill.written(), rest).unwrap();
    assert!(*fill.finish_pinned().unwrap() == *pages);
    assert_eq!(used(), before);

    // Released: those that have come, and others as they come.
    let (mut fill, rest) = held_back();
    fill.release();
    check(&store, &spec, run(0, 512));
    assert!(!fill.is_held_back() && store.pin(spec.id, run(0, 513)).is_none());
    fill.write(fill.written(), rest).unwrap();
    check(&store, &spec, all(&spec));
    fill.finish().unwrap();
    store.free(spec.id);

    // To the end: all of them, and the disk tier gets them too.
    let (mut fill, rest) = held_back();
    fill.write(fill.written(), rest).unwrap();
    assert!(store.pin(spec.id, run(0, 1)).is_none(), "complete, and not judged");
    drop(fill.finish_pinned().unwrap());
    check(&store, &spec, all(&spec));
    wait(store.flush());
    assert_eq!(store.held(spec.id).disk_bytes, 3 * MIB);
}

#[test]
fn pages_that_somebody_has_in_hand_are_not_held_back_and_nobody_waits_for_those_that_are() {
    let (_folder, store) = in_dram(16 * MIB);
    let spec = spec(1, 4 * PAGE as u32);
    let bytes = content(&spec, all(&spec));
    let mut first = store.begin_fill(spec, all(&spec)).unwrap();
    first.hold_back().unwrap();
    first.write(0, &bytes[..PAGE]).unwrap();
    let mut second = store.begin_fill(spec, run(0, 2)).unwrap();
    assert_eq!(second.hold_back().unwrap_err().kind(), ErrorKind::Retry);
    second.write(0, &bytes[..2 * PAGE]).unwrap();
    assert_eq!(second.finish().unwrap_err().kind(), ErrorKind::Retry, "the first one may take long");
    first.release();
    assert_eq!(store.begin_fill(spec, run(0, 2)).unwrap().hold_back().unwrap_err().kind(), ErrorKind::Retry, "a page is there");
    first.write(PAGE as u64, &bytes[PAGE..]).unwrap();
    first.finish().unwrap();
    check(&store, &spec, all(&spec));
}

#[test]
fn a_fill_that_ends_early_says_so() {
    let (_folder, store) = in_dram(16 * MIB);
    let mut fill = store.begin_fill(spec(1, 5000), run(0, 2)).unwrap();
    fill.write(0, &[7; 4999]).unwrap();
    assert_eq!(fill.finish().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(store.begin_fill(spec(1, 5000), run(1, 3)).err().unwrap().kind(), ErrorKind::Invalid, "no such page");
    assert_eq!(store.begin_fill(spec(2, 0), run(0, 1)).err().unwrap().kind(), ErrorKind::Invalid, "an empty segment");
    wait(store.close());
    assert_eq!(store.begin_fill(spec(2, 1), run(0, 1)).err().unwrap().kind(), ErrorKind::Closed);
}

#[test]
fn many_fill_one_segment_at_once() {
    let (_folder, store) = on_disk(64 * MIB, 64 * MIB);
    let spec = spec(9, 20 * MIB as u32);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (store, spec) = (&store, &spec);
            scope.spawn(move || {
                // Every page is filled by two threads, in different orders and pieces.
                for step in 0..40u32 {
                    let part = if thread % 2 == 0 { (step * 7 + thread) % 40 } else { 39 - step };
                    let pages = run(part * 128, (part + 1) * 128);
                    fill(store, spec, pages).unwrap();
                    check(store, spec, pages);
                }
            });
        }
    });
    check(&store, &spec, all(&spec));
    assert_eq!(store.held(spec.id).dram_bytes, 20 * MIB);
    wait(store.flush());
    assert_eq!(store.held(spec.id).disk_bytes, 20 * MIB);
}

#[test]
fn pages_are_accounted_to_their_owner() {
    let (_folder, store) = on_disk(16 * MIB, 16 * MIB);
    for (number, owner) in [Owner::Cache, Owner::Temporary, Owner::Shard, Owner::Form].into_iter().enumerate() {
        let bytes = (number as u32 + 1) * 300_000;
        let spec = forebay_block_store::SegmentSpec { owner, ..spec(number as u64, bytes) };
        fill(&store, &spec, all(&spec)).unwrap();
    }
    wait(store.flush());
    let pages = |bytes: u64| bytes.div_ceil(PAGE as u64) * PAGE as u64;
    let expected = |form| {
        let others = [(Owner::Cache, pages(300_000)), (Owner::Temporary, pages(600_000)), (Owner::Shard, pages(900_000))];
        others.into_iter().chain([(Owner::Form, form)]).collect::<Vec<_>>()
    };
    let usage = store.usage();
    assert_eq!((usage.dram.by_owner, usage.disk.by_owner), (expected(pages(1_200_000)), expected(0)), "forms are in DRAM only");
    assert_eq!(usage.segments, 4);
    assert_eq!(store.free(id(1)), 2 * pages(600_000));
    assert_eq!(store.usage().dram.by_owner[1], (Owner::Temporary, 0));
}
