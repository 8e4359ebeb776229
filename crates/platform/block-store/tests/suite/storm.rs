//! Everything at once from many threads in small tiers: bytes are right, and the books balance in the end.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_block_store::BlockStore;
use forebay_types::{ErrorKind, PageRun};

use crate::support::*;

/// A generator of its own for each thread, from one seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

#[test]
fn everything_at_once() {
    let folder = folder();
    all_at_once(with_disk(folder.path(), 6 * MIB, 10 * MIB), 6);
}

#[test]
fn everything_at_once_on_two_disks() {
    let folder = folder();
    all_at_once(with_disks(folder.path(), 6 * MIB, 6 * MIB, &[("other", 4 * MIB)]), 8);
}

/// All at once, in tiers that are much too small: whatever is read is right, and the books balance in the end.
fn all_at_once(store: BlockStore, frames: u64) {
    let specs: Vec<_> = (0..24).map(|number| spec(number, 40_000 + 123_457 * number as u32 % 3_000_000)).collect();
    let (read, loaded) = (AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    // For two seconds, and on a busy machine until enough has happened.
    let over = || {
        let enough = read.load(Relaxed) > 20 && loaded.load(Relaxed) > 5;
        began.elapsed() > Duration::from_secs(if enough { 2 } else { 30 })
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, specs, read, loaded, over) = (&store, &specs, &read, &loaded, &over);
            scope.spawn(move || {
                let mut dice = Dice(0x5eed + thread * 7919);
                let mut held = Vec::new();
                while !over() {
                    let spec = specs[dice.below(specs.len() as u64) as usize];
                    let pages = all(&spec).len;
                    let start = dice.below(u64::from(pages)) as u32;
                    let pages = run(start, (start + 1 + dice.below(300) as u32).min(pages));
                    match dice.below(20) {
                        0..8 => fill_or_retry(store, &spec, pages),
                        8..13 => {
                            let result = wait(store.load(spec.id, pages));
                            assert!(result.is_ok() || result.is_err_and(|error| error.kind() == ErrorKind::Retry));
                            loaded.fetch_add(u64::from(store.pin(spec.id, pages).is_some()), Relaxed);
                        }
                        13..17 => {
                            if let Some(pinned) = store.pin(spec.id, pages) {
                                assert!(*pinned == *content(&spec, pages), "wrong bytes");
                                read.fetch_add(1, Relaxed);
                                held.push((spec, pages, pinned));
                            }
                        }
                        17 => hold_back_or_retry(store, &spec, pages, dice.below(4)),
                        18 => {
                            store.free(spec.id);
                        }
                        _ => {
                            store.set_keep(spec.id, dice.below(8) == 0);
                            store.touch(spec.id, None, 1);
                        }
                    }
                    if held.len() > 3 || dice.below(3) == 0 {
                        for (spec, pages, pinned) in held.drain(..) {
                            assert!(*pinned == *content(&spec, pages), "pinned bytes have changed");
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            while !over() {
                assert_eq!(wait(store.scrub(Default::default(), 8 * MIB)).bad_pages, 0);
                let usage = store.usage();
                assert!(usage.dram.used_bytes <= usage.dram.capacity_bytes && usage.disk.used_bytes <= usage.disk.capacity_bytes);
            }
        });
    });
    let (read, loaded) = (read.load(Relaxed), loaded.load(Relaxed));
    assert!(read > 20 && loaded > 5, "{read} reads, {loaded} loads");
    wait(store.flush());
    specs.iter().for_each(|spec| {
        store.free(spec.id);
    });
    wait(store.flush());
    let usage = store.usage();
    assert_eq!((usage.segments, usage.disk.used_bytes, usage.dram.pinned_bytes, usage.dram.kept_bytes), (0, 0, 0, 0));
    assert!(usage.dram.used_bytes <= frames * PAGE as u64, "only frames are left: {}", usage.dram.used_bytes);
    assert!(usage.warnings.is_empty(), "{:?}", usage.warnings);
}

fn fill_or_retry(store: &BlockStore, spec: &forebay_block_store::SegmentSpec, pages: PageRun) {
    // No room, or the pages are on their way from the disk.
    if let Err(error) = fill(store, spec, pages) {
        assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    }
}

/// Pages that wait until all of them have come: given up at once or halfway, released halfway, or to the end.
fn hold_back_or_retry(store: &BlockStore, spec: &forebay_block_store::SegmentSpec, pages: PageRun, end: u64) {
    let Ok(mut fill) = store.begin_fill(*spec, pages) else { return };
    if end == 0 || fill.hold_back().is_err() {
        return;
    }
    let bytes = content(spec, pages);
    let (first, rest) = bytes[..fill.bytes() as usize].split_at(fill.bytes() as usize / 2);
    fill.write(0, first).unwrap();
    if end == 1 {
        return;
    }
    if end == 2 {
        fill.release();
    }
    fill.write(first.len() as u64, rest).unwrap();
    if let Err(error) = fill.finish() {
        assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    }
}
