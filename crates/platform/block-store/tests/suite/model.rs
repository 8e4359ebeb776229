//! Random steps against a model that only knows what was ever filled: pages are right, or missing.

use std::collections::HashMap;
use std::path::Path;

use forebay_block_store::{BlockStore, Pinned, SegmentSpec};
use forebay_types::{PAGES_PER_BLOCK, PageRun, PageSet};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::*;

/// Lengths of the segments that everything happens to: small ones, ones of several blocks, uneven ends.
const BYTES: [u32; 6] = [50_000, 4096, 700_001, 1 << 20, 1_500_000, 2_621_440];
const DRAM_BYTES: u64 = 3 << 20;
const DISK_BYTES: u64 = 4 << 20;

/// Opens the store, after so many restarts.
type Open = fn(&Path, usize) -> BlockStore;

fn one_disk(folder: &Path, _: usize) -> BlockStore {
    with_disk(folder, DRAM_BYTES, DISK_BYTES)
}

/// The same room on three disks, which have another order each time.
fn three_disks(folder: &Path, restarts: usize) -> BlockStore {
    let mut others = [("a", DISK_BYTES / 4), ("b", DISK_BYTES / 2)];
    others.rotate_left(restarts % 2);
    with_disks(folder, DRAM_BYTES, DISK_BYTES / 4, &others)
}

#[derive(Clone, Debug)]
enum Step {
    Fill(usize, Index, Index),
    FillPart(usize, Index, Index, Index),
    HoldBack(usize, Index, Index, Index),
    Pin(usize, Index, Index),
    Unpin(Index),
    Load(usize, Index, Index),
    Free(usize),
    Keep(usize, bool),
    Touch(usize),
    Flush,
    Scrub,
    Restart { close: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let segment = 0..BYTES.len();
    let run = || (any::<Index>(), any::<Index>());
    prop::collection::vec(
        prop_oneof![
            8 => (segment.clone(), run()).prop_map(|(segment, (a, b))| Step::Fill(segment, a, b)),
            2 => (segment.clone(), run(), any::<Index>()).prop_map(|(segment, (a, b), c)| Step::FillPart(segment, a, b, c)),
            2 => (segment.clone(), run(), any::<Index>()).prop_map(|(segment, (a, b), c)| Step::HoldBack(segment, a, b, c)),
            4 => (segment.clone(), run()).prop_map(|(segment, (a, b))| Step::Pin(segment, a, b)),
            3 => any::<Index>().prop_map(Step::Unpin),
            6 => (segment.clone(), run()).prop_map(|(segment, (a, b))| Step::Load(segment, a, b)),
            1 => segment.clone().prop_map(Step::Free),
            1 => (segment.clone(), any::<bool>()).prop_map(|(segment, keep)| Step::Keep(segment, keep)),
            1 => segment.prop_map(Step::Touch),
            2 => Just(Step::Flush),
            1 => Just(Step::Scrub),
            1 => any::<bool>().prop_map(|close| Step::Restart { close }),
        ],
        1..60,
    )
}

/// The pages that were ever filled since a segment was last freed: what may be there.
struct Model {
    open: Open,
    restarts: usize,
    specs: Vec<SegmentSpec>,
    filled: Vec<PageSet>,
    kept: Vec<bool>,
    pins: Vec<(usize, Pinned)>,
}

impl Model {
    fn new(open: Open) -> Self {
        let specs: Vec<_> = BYTES.iter().enumerate().map(|(number, bytes)| spec(number as u64, *bytes)).collect();
        let (filled, kept) = (vec![PageSet::new(); specs.len()], vec![false; specs.len()]);
        Self { open, restarts: 0, specs, filled, kept, pins: Vec::new() }
    }

    fn run(&self, segment: usize, a: &Index, b: &Index) -> PageRun {
        let pages = all(&self.specs[segment]).len as usize;
        let (a, b) = (a.index(pages) as u32, b.index(pages) as u32);
        run(a.min(b), a.max(b) + 1)
    }

    fn apply(&mut self, store: &mut Option<BlockStore>, folder: &Path, step: &Step) {
        let open = store.as_ref().unwrap();
        match step {
            Step::Fill(segment, a, b) => {
                let (spec, pages) = (self.specs[*segment], self.run(*segment, a, b));
                // Without room it fails; with it, the pages are there at once.
                if fill(open, &spec, pages).is_ok() {
                    check(open, &spec, pages);
                    self.filled[*segment].insert(pages);
                }
            }
            Step::FillPart(segment, a, b, c) => {
                let (spec, pages) = (self.specs[*segment], self.run(*segment, a, b));
                if let Ok(mut fill) = open.begin_fill(spec, pages) {
                    let bytes = content(&spec, pages);
                    fill.write(0, &bytes[..c.index(fill.bytes() as usize)]).unwrap();
                    self.filled[*segment].insert(pages);
                }
            }
            Step::HoldBack(segment, a, b, c) => {
                let (spec, pages) = (self.specs[*segment], self.run(*segment, a, b));
                // Given up: nothing of it was ever there.
                if let Ok(mut fill) = open.begin_fill(spec, pages)
                    && fill.hold_back().is_ok()
                {
                    fill.write(0, &content(&spec, pages)[..c.index(fill.bytes() as usize)]).unwrap();
                    assert!(open.state(spec.id, pages).dram.is_empty(), "it is held back");
                }
            }
            Step::Pin(segment, a, b) => {
                let pages = self.run(*segment, a, b);
                let there = open.state(self.specs[*segment].id, pages).dram == [pages];
                let pinned = open.pin(self.specs[*segment].id, pages);
                assert_eq!(pinned.is_some(), there);
                self.pins.extend(pinned.map(|pinned| (*segment, pinned)));
            }
            Step::Unpin(which) => {
                if !self.pins.is_empty() {
                    self.pins.swap_remove(which.index(self.pins.len()));
                }
            }
            Step::Load(segment, a, b) => {
                let (spec, pages) = (self.specs[*segment], self.run(*segment, a, b));
                if wait(open.load(spec.id, pages)).is_ok() {
                    assert!(open.state(spec.id, pages).disk.len() <= 4, "evicted again at most");
                }
            }
            Step::Free(segment) => {
                open.free(self.specs[*segment].id);
                self.filled[*segment] = PageSet::new();
                self.kept[*segment] = false;
            }
            Step::Keep(segment, keep) => {
                // Not too much, or all is kept and nothing happens any more.
                let kept: u32 = (0..BYTES.len()).filter(|other| self.kept[*other]).map(|other| BYTES[other]).sum();
                if !keep || kept < 1 << 20 {
                    self.kept[*segment] = open.set_keep(self.specs[*segment].id, *keep) && *keep;
                }
            }
            Step::Touch(segment) => open.touch(self.specs[*segment].id, None, 2),
            Step::Flush => wait(open.flush()),
            Step::Scrub => assert_eq!(wait(open.scrub(Default::default(), u64::MAX)).bad_pages, 0),
            Step::Restart { close } => {
                if *close {
                    wait(open.close());
                }
                *store = None;
                self.restarts += 1;
                *store = Some((self.open)(folder, self.restarts));
                let open = store.as_ref().unwrap();
                self.kept = self.specs.iter().map(|spec| open.held(spec.id).keep).collect();
            }
        }
    }

    /// What must hold after every step; returns what is held of each kept segment.
    fn check(&self, store: &BlockStore) -> HashMap<usize, u64> {
        let mut kept = HashMap::new();
        for (segment, spec) in self.specs.iter().enumerate() {
            let state = store.state(spec.id, all(spec));
            let count = |runs: &[PageRun]| runs.iter().map(|run| run.len).sum::<u32>();
            assert_eq!(count(&state.dram) + count(&state.disk) + count(&state.missing), all(spec).len);
            for run in state.dram.iter().chain(&state.disk) {
                assert!(self.filled[segment].missing(*run).is_empty(), "{run:?} of {segment} was never filled");
            }
            if self.kept[segment] {
                kept.insert(segment, store.held(spec.id).bytes);
            }
        }
        for (segment, pinned) in &self.pins {
            assert!(**pinned == *content(&self.specs[*segment], pinned.run()), "a pinned page has changed");
        }
        let usage = store.usage();
        for tier in [&usage.dram, &usage.disk] {
            assert!(tier.used_bytes <= tier.capacity_bytes, "{tier:?}");
        }
        assert!(usage.warnings.is_empty(), "{:?}", usage.warnings);
        kept
    }
}

fn right_or_missing(open: Open, frames: u64, steps: &[Step]) -> Result<(), TestCaseError> {
    let folder = folder();
    let mut store = Some(open(folder.path(), 0));
    let mut model = Model::new(open);
    let mut kept = HashMap::new();
    for step in steps {
        model.apply(&mut store, folder.path(), step);
        let now = model.check(store.as_ref().unwrap());
        if !matches!(step, Step::Restart { .. }) {
            for (segment, bytes) in &now {
                prop_assert!(bytes >= kept.get(segment).unwrap_or(&0), "kept pages of {segment} are gone after {step:?}");
            }
        }
        kept = now;
    }
    let store = store.unwrap();
    wait(async {
        for spec in &model.specs {
            for block in 0..all(spec).len.div_ceil(PAGES_PER_BLOCK) {
                let pages = run(block * PAGES_PER_BLOCK, ((block + 1) * PAGES_PER_BLOCK).min(all(spec).len));
                // `Retry` when pins leave no room.
                if store.load(spec.id, pages).await.is_ok() {
                    store.state(spec.id, pages).dram.iter().for_each(|run| check(&store, spec, *run));
                }
            }
        }
    });
    // All comes back in the end, to the page.
    model.pins.clear();
    wait(store.flush());
    model.specs.iter().for_each(|spec| {
        store.free(spec.id);
    });
    wait(store.flush());
    let usage = store.usage();
    prop_assert_eq!((usage.disk.used_bytes, usage.segments, usage.dram.pinned_bytes), (0, 0, 0));
    prop_assert!(usage.dram.by_owner.iter().all(|(_, bytes)| *bytes == 0));
    prop_assert!(usage.dram.used_bytes <= frames * PAGE as u64, "only the frames");
    prop_assert!(store.resident_bytes().unwrap() <= frames * PAGE as u64);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_pages_are_right_or_missing(steps in steps()) {
        right_or_missing(one_disk, 4, &steps)?;
    }

    #[test]
    fn whatever_happens_on_several_disks_pages_are_right_or_missing(steps in steps()) {
        right_or_missing(three_disks, 12, &steps)?;
    }
}
