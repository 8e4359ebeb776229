//! The window of a plan, and readers that run ahead, stay behind or stop.

use forebay_scheduling::{PlannedRange, UNIT_BYTES_MAX, Window};

const MIB: u64 = 1 << 20;

fn range(version_ix: usize, start_mib: u64, len_mib: u64) -> PlannedRange {
    PlannedRange { version_ix, start: start_mib * MIB, len: len_mib * MIB }
}

/// Everything that the window hands out now.
fn drain(window: &mut Window) -> Vec<PlannedRange> {
    std::iter::from_fn(|| window.next()).collect()
}

fn read(window: &mut Window, version_ix: usize, start_mib: u64, len_mib: u64) {
    window.read(version_ix, start_mib * MIB..(start_mib + len_mib) * MIB);
}

#[test]
fn big_ranges_are_cut_within_segments_at_pages() {
    let start = 61 * MIB + 100;
    let mut window = Window::new(vec![PlannedRange { version_ix: 3, start, len: 10 * MIB }], 1 << 40);
    let units = drain(&mut window);
    let cuts: Vec<_> = units.iter().map(|unit| (unit.start, unit.start + unit.len)).collect();
    // At the segment's border, then whole units, then the rest.
    assert_eq!(cuts, [(start, 64 * MIB), (64 * MIB, 68 * MIB), (68 * MIB, 71 * MIB + 100)]);

    let mut odd = Window::new(vec![PlannedRange { version_ix: 0, start: 1000, len: 5 * MIB }], 1 << 40);
    let first = odd.next().unwrap();
    assert_eq!((first.start, first.start + first.len), (1000, UNIT_BYTES_MAX), "cut at a page's border");
}

#[test]
fn hands_out_in_order_until_full_and_moves_as_it_is_read() {
    let mut window = Window::new(vec![range(0, 0, 6), range(1, 0, 2), range(0, 100, 4)], 8 * MIB);
    assert_eq!(drain(&mut window), [range(0, 0, 4), range(0, 4, 2), range(1, 0, 2)]);
    assert_eq!(window.outstanding(), 8 * MIB);
    assert_eq!(window.next(), None);
    read(&mut window, 0, 0, 1);
    assert_eq!(window.outstanding(), 7 * MIB);
    assert_eq!(drain(&mut window), [range(0, 100, 4)]);
    assert!(window.is_finished());
    assert_eq!(window.outstanding(), 11 * MIB);
}

#[test]
fn repeated_and_partial_reads_count_once() {
    let mut window = Window::new(vec![range(0, 0, 4)], 8 * MIB);
    drain(&mut window);
    for _ in 0..3 {
        read(&mut window, 0, 1, 2);
        assert_eq!(window.outstanding(), 2 * MIB);
    }
    window.read(0, 0..3 * MIB + 1);
    assert_eq!(window.outstanding(), MIB - 1);
    window.read(0, 5..5);
    window.read(7, 0..100 * MIB);
    assert_eq!(window.outstanding(), MIB - 1);
    window.read(0, 0..u64::MAX);
    assert_eq!(window.outstanding(), 0);
}

#[test]
fn what_demand_has_read_is_not_handed_out() {
    let mut window = Window::new(vec![range(0, 0, 4), range(1, 0, 4), range(2, 0, 4)], 4 * MIB);
    assert_eq!(drain(&mut window), [range(0, 0, 4)]);
    read(&mut window, 1, 1, 2);
    read(&mut window, 2, 0, 4);
    read(&mut window, 0, 0, 4);
    assert_eq!(drain(&mut window), [range(1, 0, 1), range(1, 3, 1)], "the parts around what was read");
    assert!(window.is_finished());
}

#[test]
fn bytes_planned_twice_are_handed_out_once() {
    let mut window = Window::new(vec![range(0, 2, 2), range(0, 0, 6), range(0, 1, 4), range(0, 0, 0)], 1 << 40);
    assert_eq!(drain(&mut window), [range(0, 2, 2), range(0, 0, 2), range(0, 4, 2)]);
}

#[test]
fn a_reader_that_is_ahead_all_the_time_does_not_stall_the_window() {
    // Shared storage is slow: demand always reads before the window has come there.
    let mut window = Window::new(vec![range(0, 0, 256)], 16 * MIB);
    let mut handed = drain(&mut window).len();
    for at in 0..64 {
        read(&mut window, 0, at * 4, 4);
        handed += drain(&mut window).len();
        assert!(window.outstanding() <= 16 * MIB);
    }
    assert!(window.is_finished());
    assert_eq!((window.outstanding(), handed), (0, 64));
}

#[test]
fn a_row_group_pruned_at_run_time_is_passed() {
    // Row groups of 4 MiB; the second of them is never read.
    let mut window = Window::new((0..8).map(|i| range(0, i * 4, 4)).collect(), 12 * MIB);
    assert_eq!(drain(&mut window).len(), 3);
    read(&mut window, 0, 0, 4);
    assert_eq!(drain(&mut window), [range(0, 12, 4)]);
    read(&mut window, 0, 8, 1);
    assert_eq!(window.outstanding(), 7 * MIB, "the pruned unit is passed, the rest of the read one is not");
    assert_eq!(drain(&mut window), [range(0, 16, 4), range(0, 20, 4)]);
}

#[test]
fn what_is_planned_for_later_is_not_passed_by_bytes() {
    // A scan from the end to the start: lower bytes are not behind the reader.
    let mut window = Window::new((0..8).rev().map(|i| range(0, i * 4, 4)).collect(), 8 * MIB);
    let mut handed = drain(&mut window);
    for i in (0..8).rev() {
        read(&mut window, 0, i * 4, 4);
        handed.extend(drain(&mut window));
    }
    assert_eq!(handed, (0..8).rev().map(|i| range(0, i * 4, 4)).collect::<Vec<_>>());
}

#[test]
fn files_that_are_never_read_do_not_block_for_ever() {
    // The first three files fill the window and a dynamic filter prunes them all.
    let mut window = Window::new((0..40).map(|file| range(file, 0, 4)).collect(), 12 * MIB);
    drain(&mut window);
    let mut prefetched = 0;
    for file in 3..40 {
        let before = window.outstanding();
        read(&mut window, file, 0, 4);
        prefetched += u64::from(window.outstanding() < before);
        drain(&mut window);
    }
    assert!(prefetched >= 30, "{prefetched} of 37 reads were prefetched");
}

#[test]
fn partitions_that_read_one_file_at_several_places_are_all_followed() {
    // Four partitions of 64 MiB of one file, planned one after the other, window 32 MiB.
    let mut window = Window::new(vec![range(0, 0, 256)], 32 * MIB);
    drain(&mut window);
    let mut missed = [0; 4];
    for step in 0..32 {
        for (partition, missed) in missed.iter_mut().enumerate() {
            let at = partition as u64 * 64 + step * 2;
            let before = window.outstanding();
            read(&mut window, 0, at, 2);
            *missed += u64::from(window.outstanding() == before);
            drain(&mut window);
            assert!(window.outstanding() < 32 * MIB + UNIT_BYTES_MAX);
        }
    }
    assert!(missed.iter().all(|missed| *missed <= 6), "reads that were not prefetched, of 32 each: {missed:?}");
    assert!(window.is_finished());
}

#[test]
fn partitions_planned_in_turns_share_one_place() {
    let plan = (0..16).flat_map(|i| [range(0, i * 4, 4), range(0, 64 + i * 4, 4)]).collect();
    let mut window = Window::new(plan, 16 * MIB);
    drain(&mut window);
    let mut handed = Vec::new();
    for i in 0..16 {
        read(&mut window, 0, i * 4, 4);
        handed.extend(drain(&mut window));
        read(&mut window, 0, 64 + i * 4, 4);
        handed.extend(drain(&mut window));
    }
    assert_eq!(handed.len(), 32 - 4, "everything after the first window follows the reads");
    assert_eq!(window.outstanding(), 0);
}

#[test]
fn an_empty_plan_is_finished() {
    let mut window = Window::new(vec![], 1);
    assert!(window.is_finished());
    assert_eq!(window.next(), None);
    window.read(0, 0..10);
    assert_eq!(window.outstanding(), 0);
}

#[test]
fn a_large_plan_is_followed_in_reasonable_time() {
    // 100,000 column chunks of 64 KiB in 100 files, four readers a quarter of the plan apart.
    let plan: Vec<_> = (0..100_000u64)
        .map(|i| PlannedRange { version_ix: (i / 1000) as usize, start: (i % 1000) * 100_000, len: 65_536 })
        .collect();
    let started = std::time::Instant::now();
    let mut window = Window::new(plan.clone(), 64 * MIB);
    drain(&mut window);
    for i in 0..25_000 {
        for reader in 0..4 {
            let PlannedRange { version_ix, start, len } = plan[reader * 25_000 + i];
            window.read(version_ix, start..start + len);
            drain(&mut window);
        }
    }
    assert!(window.is_finished() && window.outstanding() == 0);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}
