//! Pinned pages stay, whatever happens to their segment or to the store.

use std::fs::File;
use std::os::unix::fs::FileExt;

use forebay_types::ErrorKind;

use crate::support::*;

#[test]
fn pinned_pages_stay_and_all_pinned_is_said_at_once() {
    let (_folder, store) = in_dram(4 * MIB);
    let spec_of = |number| spec(number, MIB as u32);
    let mut pins = Vec::new();
    for number in 0..3 {
        fill(&store, &spec_of(number), run(0, 256)).unwrap();
        pins.push(store.pin(id(number), run(0, 256)).unwrap());
    }
    assert_eq!(store.pinned_bytes(), 3 * MIB);
    assert_eq!(store.pinned_bytes_max(), 2 * MIB);
    // One block less a page of checksums is left: two of half a block fit, one after the other.
    for number in 10..20 {
        fill(&store, &spec(number, MIB as u32 / 2), run(0, 128)).unwrap();
    }
    assert_eq!(fill(&store, &spec_of(30), run(0, 256)).unwrap_err().kind(), ErrorKind::Retry);
    (0..3).for_each(|number| check(&store, &spec_of(number), run(0, 256)));
    drop(pins);
    assert_eq!(store.pinned_bytes(), 0);
    fill(&store, &spec_of(30), run(0, 256)).unwrap();
}

#[test]
fn a_freed_segment_is_gone_at_once_and_its_memory_when_its_pins_end() {
    let (_folder, store) = in_dram(16 * MIB);
    let spec = spec(1, 3 * MIB as u32);
    fill(&store, &spec, all(&spec)).unwrap();
    let pinned = store.pin(spec.id, run(0, 1)).unwrap();
    let bytes = pinned.clone().into_bytes().slice(10..20);
    drop(pinned);
    assert_eq!(store.free(spec.id), 3 * MIB);
    assert!(store.pin(spec.id, run(0, 1)).is_none());
    assert!(store.segments().is_empty());
    assert_eq!(*bytes, content(&spec, run(0, 1))[10..20]);
    assert!(store.resident_bytes().unwrap() >= 3 * MIB);
    // Filled anew while the old pages are still under a pin.
    fill(&store, &spec, all(&spec)).unwrap();
    check(&store, &spec, all(&spec));
    assert_eq!(*bytes, content(&spec, run(0, 1))[10..20]);
    drop(bytes);
    assert_eq!(store.free(spec.id), 3 * MIB);
    assert_eq!(store.usage().dram.used_bytes, 0);
    assert_eq!(store.resident_bytes().unwrap(), 0);
    assert_eq!(store.free(spec.id), 0);
}

#[test]
fn pins_outlive_the_store() {
    let (_folder, store) = on_disk(16 * MIB, 16 * MIB);
    let spec = spec(1, 100_000);
    fill(&store, &spec, all(&spec)).unwrap();
    let pinned = store.pin(spec.id, all(&spec)).unwrap();
    drop(store);
    assert!(*pinned == *content(&spec, all(&spec)));
}

#[test]
fn the_arena_can_be_read_by_others_and_not_written() {
    let (_folder, store) = in_dram(16 * MIB);
    let spec = spec(1, 100_000);
    fill(&store, &spec, all(&spec)).unwrap();
    let pinned = store.pin(spec.id, run(3, 20)).unwrap();
    let arena = store.arena().unwrap();
    assert!(arena.bytes >= 1 << 40);
    let file = File::from(arena.fd);
    let mut found = vec![0; 17 * PAGE];
    file.read_exact_at(&mut found, pinned.arena_offset()).unwrap();
    assert!(found == *content(&spec, run(3, 20)));
    assert!(file.write_at(b"x", pinned.arena_offset()).is_err(), "the descriptor is read-only");
    assert!(file.set_len(0).is_err(), "the arena is sealed");
    let writable = File::from(store.writable_arena().unwrap());
    assert!(writable.set_len(0).is_err(), "for writers too");
}
