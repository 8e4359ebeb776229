//! What the tiers cost beside the data: disk and memory of small objects, and bytes of heap for each block.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use forebay_block_store::SegmentSpec;

use crate::children::{child, child_folder};
use crate::support::*;

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn an_object_of_50_kb_costs_52_kib_and_its_share_of_a_page_of_checksums() {
    let (folder, store) = on_disk(64 * MIB, 64 * MIB);
    let before = store.usage().dram.used_bytes;
    let count = 500;
    for number in 0..count {
        let spec = spec(number, 50_000);
        fill(&store, &spec, all(&spec)).unwrap();
    }
    wait(store.flush());
    let usage = store.usage();
    for used in [usage.dram.used_bytes - before, usage.disk.used_bytes] {
        let each = used / count;
        assert!((52 << 10..53 << 10).contains(&each), "{each} bytes an object");
    }
    // The books are right: the system counts as much, less frames that nothing has been read into.
    let resident = store.resident_bytes().unwrap();
    assert!(resident <= usage.dram.used_bytes && resident > usage.dram.used_bytes - before, "{resident} of {usage:?}");
    let on_disk: u64 = ["disk.tier", "disk.sums"].map(|name| blocks(&folder.path().join(name))).iter().sum();
    assert!(on_disk <= usage.disk.used_bytes + MIB / 4, "{on_disk} of {}", usage.disk.used_bytes);
}

fn blocks(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn memory_beyond_the_tiers_is_at_most_64_bytes_a_block() {
    for test in ["cost::measure_blocks_on_disk", "cost::measure_blocks_in_dram"] {
        let folder = folder();
        let output = child(test, folder.path()).output().unwrap();
        assert!(output.status.success(), "{test}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// An index of whole segments of 64 MiB, byte for byte as docs/specs/disk-tier.md has it.
fn write_index(path: &Path, segments: u64) {
    let sealed = |mut record: [u8; 40]| {
        let sum = forebay_types::crc32c(&record[4..]);
        record[..4].copy_from_slice(&sum.to_le_bytes());
        record
    };
    let mut header = [0; 40];
    header[8..16].copy_from_slice(b"FBYINDEX");
    header[16] = 2;
    let mut bytes = sealed(header).to_vec();
    for number in 0..segments {
        let mut extent = [0; 40];
        extent[4] = 1;
        extent[8..24].copy_from_slice(&id(number).0.to_le_bytes());
        let mut present = extent;
        present[4] = 2;
        extent[24..32].copy_from_slice(&(number * 16_384).to_le_bytes());
        extent[32..36].copy_from_slice(&(64u32 << 20).to_le_bytes());
        present[36..].copy_from_slice(&16_384u32.to_le_bytes());
        bytes.extend([sealed(extent), sealed(present)].concat());
    }
    std::fs::write(path, bytes).unwrap();
}

/// Heap that a store takes which recovers so many segments into a tier of so many blocks.
fn heap_of(folder: &Path, segments: u64, blocks: u64) -> (i64, u64) {
    drop(with_disk(folder, MIB, MIB));
    write_index(&folder.join("disk.index"), segments);
    let before = LIVE.load(Relaxed);
    // Room for the blocks and their checksums.
    let store = with_disk(folder, 2 * MIB, blocks * (MIB + 1024));
    assert_eq!(store.usage().disk.by_owner[0].1, blocks * MIB);
    // What the threads take in passing is settled when the first task is done.
    wait(store.flush());
    (LIVE.load(Relaxed) - before, store.metadata_bytes())
}

#[test]
#[ignore = "run by the test above in a process of its own, where nobody else allocates"]
fn measure_blocks_on_disk() {
    let folder = child_folder();
    let (few, _) = heap_of(&folder, 16, 1024);
    let (many, estimate) = heap_of(&folder, 80, 1024 + 4096);
    let each = (many - few) as f64 / 4096.0;
    println!("{each:.1} bytes a block on disk; estimated {:.1}", estimate as f64 / (1024.0 + 4096.0));
    assert!(each <= 64.0, "{each} bytes a block");
    assert!(estimate as f64 <= many as f64 * 1.5 && estimate as f64 >= (many - few) as f64 * 0.5, "{estimate} of {many}");
    // With as many blocks remembered that have gone.
    let (evicted, _) = heap_of(&folder, 160, 1024 + 4096);
    let each = (evicted - few) as f64 / 4096.0;
    println!("{each:.1} bytes a block after as many were evicted");
    assert!(each <= 64.0, "{each} bytes a block");
}

#[test]
#[ignore = "run by the test above in a process of its own, where nobody else allocates"]
fn measure_blocks_in_dram() {
    let folder = child_folder();
    let store = dram_only(&folder, 448 * MIB);
    let zeros = vec![0; MIB as usize];
    let put = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            let spec = SegmentSpec { bytes: 64 << 20, ..spec(number, 1) };
            let mut fill = store.begin_fill(spec, all(&spec)).unwrap();
            (0..64).for_each(|block| fill.write(block * MIB, &zeros).unwrap());
            fill.finish().unwrap();
            // Read in place, as everything is once.
            drop(store.pin(spec.id, all(&spec)).unwrap());
        }
    };
    put(0..2);
    let before = LIVE.load(Relaxed);
    put(2..6);
    let each = (LIVE.load(Relaxed) - before) as f64 / 256.0;
    println!("{each:.1} bytes a block in DRAM");
    assert!(each <= 64.0, "{each} bytes a block");
    assert_eq!(store.usage().dram.by_owner[0].1, 384 * MIB);
}
