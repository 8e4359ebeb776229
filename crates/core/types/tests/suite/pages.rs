//! Runs and sets of pages against counting page by page.

use std::collections::BTreeSet;

use forebay_types::{PAGE_BYTES, PAGES_PER_SEGMENT, PageRun, PageSet, SEGMENT_BYTES};
use proptest::prelude::*;

#[test]
fn runs_cover_the_bytes_asked_for() {
    assert_eq!(PageRun::covering(0..0), None);
    assert_eq!(PageRun::covering(4096..4096), None);
    assert_eq!(PageRun::covering(0..1), Some(PageRun::new(0, 1)));
    assert_eq!(PageRun::covering(4095..4097), Some(PageRun::new(0, 2)));
    assert_eq!(PageRun::covering(4096..8192), Some(PageRun::new(1, 2)));
    assert_eq!(PageRun::covering(0..SEGMENT_BYTES), Some(PageRun::new(0, PAGES_PER_SEGMENT)));
}

#[test]
#[should_panic(expected = "no run of a segment")]
fn a_run_ends_within_its_segment() {
    PageRun::new(0, PAGES_PER_SEGMENT + 1);
}

#[test]
fn a_set_that_was_emptied_is_the_empty_set() {
    let mut set: PageSet = [PageRun::new(100, 200)].into_iter().collect();
    set.remove(PageRun::new(0, 300));
    assert_eq!(set, PageSet::new());
    assert!(set.is_empty());
}

fn run() -> impl Strategy<Value = PageRun> {
    (0..300u32, 1..100u32).prop_map(|(start, len)| PageRun::new(start, start + len))
}

/// The maximal runs of an ordered set, counted page by page.
fn runs_of(pages: impl Iterator<Item = u32>) -> Vec<PageRun> {
    let mut runs: Vec<PageRun> = Vec::new();
    for page in pages {
        match runs.last_mut() {
            Some(run) if run.end() == page => run.len += 1,
            _ => runs.push(PageRun::new(page, page + 1)),
        }
    }
    runs
}

proptest! {
    #[test]
    fn covering_is_the_smallest_run(start in 0..SEGMENT_BYTES, len in 1..SEGMENT_BYTES) {
        let range = start..(start + len).min(SEGMENT_BYTES);
        let bytes = PageRun::covering(range.clone()).unwrap().bytes();
        prop_assert!(bytes.start <= range.start && range.end <= bytes.end);
        prop_assert!(range.start - bytes.start < PAGE_BYTES && bytes.end - range.end < PAGE_BYTES);
    }

    #[test]
    fn sets_agree_with_counting(steps in prop::collection::vec((any::<bool>(), run()), 0..20), asked in run()) {
        let mut set = PageSet::new();
        let mut counted = BTreeSet::new();
        for (insert, run) in steps {
            if insert {
                set.insert(run);
                counted.extend(run.pages());
            } else {
                set.remove(run);
                counted.retain(|page| !run.pages().contains(page));
            }
        }
        prop_assert_eq!(set.len() as usize, counted.len());
        prop_assert_eq!(set.is_empty(), counted.is_empty());
        prop_assert!((0..500).all(|page| set.contains(page) == counted.contains(&page)));
        prop_assert_eq!(set.runs(), runs_of(counted.iter().copied()));
        prop_assert_eq!(set.missing(asked), runs_of(asked.pages().filter(|page| !counted.contains(page))));
        prop_assert_eq!(runs_of(counted.into_iter()).into_iter().collect::<PageSet>(), set);
    }
}
