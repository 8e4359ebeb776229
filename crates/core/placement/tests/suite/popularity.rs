//! Aging, late reports, fresh segments, and what a checkpoint keeps.

use std::collections::HashMap;

use forebay_placement::{Heat, Popularity, Usage, Windows};
use forebay_types::{ErrorKind, SegmentId};
use proptest::prelude::*;

fn accesses(accesses: f64) -> Usage {
    Usage { accesses, reads: accesses * 2.0, bytes: accesses * 100.0, service_us: accesses * 7.0 }
}

#[test]
fn getafix_section_3_3_every_window_counts_half_of_the_next() {
    let mut popularity = Popularity::new(1);
    for (window, count) in [(1, 40.0), (2, 20.0), (3, 8.0)] {
        popularity.close(window);
        popularity.add(window, SegmentId(1), accesses(count));
    }
    assert_eq!(popularity.of(SegmentId(1)).accesses, 8.0 + 20.0 / 2.0 + 40.0 / 4.0);
    assert_eq!(popularity.of(SegmentId(1)).bytes, 2800.0);
    assert_eq!(popularity.count(SegmentId(1)), 28);
}

#[test]
fn a_late_report_counts_as_if_it_had_come_in_time() {
    let mut late = Popularity::new(5);
    let mut timely = late.clone();
    timely.add(5, SegmentId(1), accesses(12.0));
    timely.close(8);
    late.close(8);
    late.add(5, SegmentId(1), accesses(12.0));
    assert_eq!(late.of(SegmentId(1)), timely.of(SegmentId(1)));
}

#[test]
fn what_nobody_reads_any_more_is_forgotten() {
    let mut popularity = Popularity::new(0);
    popularity.add(0, SegmentId(1), accesses(100.0));
    popularity.close(16);
    assert_eq!(popularity.len(), 1);
    popularity.close(17);
    assert!(popularity.is_empty());
}

#[test]
fn a_fresh_segment_starts_like_the_newest_before_it() {
    let mut popularity = Popularity::new(3);
    popularity.add(3, SegmentId(1), accesses(50.0));
    assert!(popularity.start_like(SegmentId(2), SegmentId(1)));
    assert!(!popularity.start_like(SegmentId(2), SegmentId(1)), "it is counted already");
    assert_eq!(popularity.count(SegmentId(2)), 50);
    popularity.add(3, SegmentId(3), accesses(4.0));
    popularity.start_like(SegmentId(3), SegmentId(1));
    assert_eq!(popularity.count(SegmentId(3)), 4, "what is counted already stays as it is");
    popularity.start_like(SegmentId(4), SegmentId(99));
    assert_eq!(popularity.len(), 3);
}

#[test]
fn windows_are_numbered_by_time() {
    let windows = Windows::new(60_000);
    assert_eq!([windows.of(0), windows.of(59_999), windows.of(60_000)], [0, 0, 1]);
}

#[test]
fn a_checkpoint_is_written_as_the_page_says() {
    let mut popularity = Popularity::new(7);
    popularity.add(7, SegmentId(1), accesses(2.0));
    let bytes = popularity.encode(1 << 20);
    let (body, sum) = bytes.split_at(bytes.len() - 8);
    let hex = forebay_types::hex(body);
    assert_eq!(
        hex,
        concat!(
            "464259504f50554c",
            "02000000",
            "01000000",
            "0700000000000000",
            "01000000000000000000000000000000",
            "00000040",
            "00004843",
            "00006041",
            "00008040"
        )
    );
    assert_eq!(sum, xxhash_rust::xxh3::xxh3_64(body).to_le_bytes());
}

#[test]
fn a_checkpoint_of_version_1_counts_a_read_for_each_access() {
    let hex = concat!(
        "464259504f50554c",
        "01000000",
        "01000000",
        "0700000000000000",
        "01000000000000000000000000000000",
        "00000040",
        "00004843",
        "00006041",
        "3df4b1271e48eb88"
    );
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    let popularity = Popularity::decode(&bytes).unwrap();
    assert_eq!(popularity.window(), 7);
    assert_eq!(popularity.of(SegmentId(1)), Usage { reads: 2.0, ..accesses(2.0) });
}

#[test]
fn a_checkpoint_that_is_too_large_keeps_the_most_popular() {
    let mut popularity = Popularity::new(0);
    for segment in 0..100u64 {
        popularity.add(0, SegmentId(u128::from(segment)), accesses((segment * 37 % 100) as f64 + 1.0));
    }
    let bytes = popularity.encode(32 + 10 * 32 + 5);
    assert_eq!(bytes.len(), 32 + 10 * 32);
    let kept = Popularity::decode(&bytes).unwrap();
    assert_eq!(kept.len(), 10);
    assert!(kept.segments().iter().all(|(_, usage)| usage.accesses > 90.0));
}

#[test]
fn a_damaged_checkpoint_is_refused() {
    let mut popularity = Popularity::new(7);
    popularity.add(7, SegmentId(1), accesses(2.0));
    let bytes = popularity.encode(1 << 20);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert_eq!(Popularity::decode(&damaged).unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
        assert_eq!(Popularity::decode(&bytes[..at]).unwrap_err().kind(), ErrorKind::Corrupt, "{at} bytes");
    }
}

proptest! {
    #[test]
    fn a_checkpoint_holds_what_was_counted(reads in prop::collection::vec((0u64..50, 0u128..40, 1u32..5000), 0..200), last in 0u64..60) {
        let mut popularity = Popularity::new(0);
        for (window, segment, count) in reads {
            popularity.close(window);
            popularity.add(window, SegmentId(segment), accesses(f64::from(count)));
        }
        popularity.close(last);
        let read = Popularity::decode(&popularity.encode(1 << 20)).unwrap();
        prop_assert_eq!(read.window(), popularity.window());
        prop_assert_eq!(read.len(), popularity.len());
        for (segment, usage) in popularity.segments() {
            prop_assert!((read.of(segment).accesses - usage.accesses).abs() <= usage.accesses * 1e-6);
        }
    }

    #[test]
    fn what_is_kept_beside_a_segment_is_what_would_be_found(
        steps in prop::collection::vec((0u8..7, 0u128..4, 0u64..20, 1u32..5000), 0..80),
    ) {
        let mut popularity = Popularity::new(20);
        let mut beside: HashMap<SegmentId, Heat> = HashMap::new();
        for (step, number, windows, count) in steps {
            let (segment, now) = (SegmentId(number), popularity.window());
            match step {
                0..=2 => {
                    let heat = popularity.add(now - windows, segment, accesses(f64::from(count)));
                    prop_assert_eq!(heat, popularity.heat(segment));
                    beside.insert(segment, heat);
                }
                3 | 4 => popularity.close(now + 1 + windows),
                5 => {
                    popularity.follow();
                    beside.iter_mut().for_each(|(segment, heat)| *heat = popularity.heat(*segment));
                }
                _ => {
                    popularity.start_like(segment, SegmentId((number + 1) % 4));
                    beside.insert(segment, popularity.heat(segment));
                }
            }
            for segment in (0..4).map(SegmentId) {
                let kept = beside.get(&segment).copied().unwrap_or_default().at(popularity.window());
                prop_assert_eq!(kept, popularity.of(segment).accesses);
            }
        }
    }

    #[test]
    fn the_order_of_reports_does_not_matter(reads in prop::collection::vec((0u64..20, 0u128..5, 1u32..100), 0..60)) {
        let count = |reads: &[(u64, u128, u32)]| {
            let mut popularity = Popularity::new(20);
            for (window, segment, count) in reads {
                popularity.add(*window, SegmentId(*segment), accesses(f64::from(*count)));
            }
            (0..5).map(|segment| popularity.of(SegmentId(segment)).accesses).collect::<Vec<_>>()
        };
        let backwards: Vec<_> = reads.iter().rev().copied().collect();
        for (one, other) in count(&reads).into_iter().zip(count(&backwards)) {
            prop_assert!((one - other).abs() < 1e-6);
        }
    }
}

#[test]
fn what_has_changed_is_followed_within_a_window_and_what_has_not_is_the_papers() {
    let zipf = |rank: u64| (2000.0 / (rank as f64).powf(1.4)).round();
    let mut popularity = Popularity::new(0);
    let mut halved = popularity.clone();
    let window = |now: u64, turned: bool, popularity: &mut Popularity| {
        popularity.close(now);
        for rank in 1..=60 {
            let segment = if turned { 61 - rank } else { rank };
            popularity.add(now, SegmentId(segment.into()), accesses(zipf(rank) + (now * rank % 5) as f64));
        }
    };
    for now in 1..=8 {
        window(now, false, &mut popularity);
        assert_eq!(popularity.follow(), 1.0, "window {now} is like those before it");
        window(now, false, &mut halved);
    }
    assert_eq!(popularity, halved);
    window(9, true, &mut popularity);
    window(9, true, &mut halved);
    let kept = popularity.follow();
    assert!(kept < 0.3, "{kept}");
    let share = |popularity: &Popularity| {
        let all: f64 = popularity.segments().iter().map(|(_, usage)| usage.accesses).sum();
        popularity.of(SegmentId(60)).accesses / all
    };
    assert!(share(&popularity) > 0.3 && share(&halved) < 0.22, "{} {}", share(&popularity), share(&halved));
    // From then on the new world is the usual one.
    window(10, true, &mut popularity);
    assert!(popularity.follow() > kept);
}
