//! Segments with known contents, and short ways to fill, load and check them.

use std::path::{Path, PathBuf};

use forebay_block_store::{BlockStore, SegmentSpec, StoreSettings};
use forebay_types::{Owner, PAGE_BYTES, PageRun, SegmentId};
use tempfile::TempDir;

pub const MIB: u64 = 1 << 20;
pub const PAGE: usize = PAGE_BYTES as usize;

/// Ids as hashes are: spread over all bits.
pub fn id(number: u64) -> SegmentId {
    let spread =
        |seed: u64| (number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    SegmentId(u128::from(spread(1)) << 64 | u128::from(spread(2)))
}

pub fn spec(number: u64, bytes: u32) -> SegmentSpec {
    SegmentSpec { id: id(number), bytes, owner: Owner::Cache, keep: false }
}

pub fn run(start: u32, end: u32) -> PageRun {
    PageRun::new(start, end)
}

pub fn all(spec: &SegmentSpec) -> PageRun {
    run(0, spec.bytes.div_ceil(PAGE as u32))
}

/// What a segment's pages hold: different in every page of every segment, zeros after the segment's end.
pub fn content(spec: &SegmentSpec, pages: PageRun) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pages.len as usize * PAGE);
    for page in pages.pages() {
        let mut word = (spec.id.0 as u64) ^ u64::from(page).wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
        for _ in 0..PAGE / 8 {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            bytes.extend_from_slice(&word.to_le_bytes());
        }
    }
    let end = (spec.bytes as usize).saturating_sub(pages.start as usize * PAGE);
    if end < bytes.len() {
        bytes[end..].fill(0);
    }
    bytes
}

/// Fills pages in pieces of an odd size, as a network gives them.
pub fn fill(store: &BlockStore, spec: &SegmentSpec, pages: PageRun) -> forebay_types::Result<()> {
    let mut fill = store.begin_fill(*spec, pages)?;
    let bytes = content(spec, pages);
    let mut at = 0;
    for piece in bytes[..fill.bytes() as usize].chunks(100_003) {
        fill.write(at, piece)?;
        at += piece.len() as u64;
    }
    fill.finish()
}

/// The pages are in DRAM and hold what they should.
pub fn check(store: &BlockStore, spec: &SegmentSpec, pages: PageRun) {
    let pinned = store.pin(spec.id, pages).unwrap_or_else(|| panic!("{pages:?} of {} are not in DRAM", spec.id));
    assert!(*pinned == *content(spec, pages), "wrong bytes in {pages:?} of {}", spec.id);
}

/// Loads pages and checks those that are there; returns how many were.
pub async fn load_and_check(store: &BlockStore, spec: &SegmentSpec, pages: PageRun) -> u32 {
    store.load(spec.id, pages).await.unwrap();
    let there = store.state(spec.id, pages).dram;
    there.iter().for_each(|run| check(store, spec, *run));
    there.iter().map(|run| run.len).sum()
}

/// A store in a folder of its own.
pub fn in_dram(dram_bytes: u64) -> (TempDir, BlockStore) {
    let folder = folder();
    let store = dram_only(folder.path(), dram_bytes);
    (folder, store)
}

pub fn on_disk(dram_bytes: u64, disk_bytes: u64) -> (TempDir, BlockStore) {
    let folder = folder();
    let store = with_disk(folder.path(), dram_bytes, disk_bytes);
    (folder, store)
}

pub fn dram_only(folder: &Path, dram_bytes: u64) -> BlockStore {
    BlockStore::open(StoreSettings::new(folder, dram_bytes)).unwrap()
}

pub fn with_disk(folder: &Path, dram_bytes: u64, disk_bytes: u64) -> BlockStore {
    BlockStore::open(StoreSettings::new(folder, dram_bytes).with_disk(disk_bytes)).unwrap()
}

/// A store with disks of these sizes beside the one of its own folder, named in this order.
pub fn with_disks(folder: &Path, dram_bytes: u64, own_bytes: u64, others: &[(&str, u64)]) -> BlockStore {
    let mut settings = StoreSettings::new(folder, dram_bytes).with_disk(own_bytes);
    for (name, bytes) in others {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        settings = settings.with_disk_folder(folder.join(name), *bytes);
    }
    BlockStore::open(settings).unwrap()
}

/// A folder on a real disk rather than a tmpfs, where O_DIRECT is what it says.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

/// Blocks on a future, on one thread of its own runtime.
pub fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
