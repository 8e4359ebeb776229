//! What is counted of pages that are nearly right.

use proptest::prelude::*;

use super::super::ParquetCompressed;
use super::super::header::Deltas;
use super::super::tests::{signed, varint};
use super::*;

const MOST: u64 = 1 << 20;

fn column(levels: [i16; 2]) -> ParquetColumn {
    ParquetColumn { physical_type: BYTES, type_length: 0, values: 100_000, is_compressed: false, levels }
}

/// A page of the first version, whose lengths stand so many times before text.
fn page(column: ParquetColumn, values: u32, streams: u64) -> ParquetPage {
    let said = column.text(values, Deltas { streams, repetition: 3, definition: 3, are_bytes: false });
    let (text, indices) = if streams > 0 { (Some(said), None) } else { (None, Some(said)) };
    ParquetPage { bytes: 1, compressed: None, text, dictionary: None, indices, plain: None }
}

fn dictionary(lengths: &[u32]) -> (ParquetPage, Vec<u8>) {
    let values = Some(lengths.len() as u32);
    let page = ParquetPage { bytes: 1, compressed: None, text: None, dictionary: values, indices: None, plain: None };
    (page, lengths.iter().flat_map(|length| [&length.to_le_bytes()[..], &vec![7; *length as usize]].concat()).collect())
}

/// Numbers of one byte, and how often each stands there.
fn runs_of(runs: &[(u8, u64)]) -> Vec<u8> {
    runs.iter().flat_map(|(value, times)| [varint(times << 1), vec![*value]].concat()).collect()
}

/// Levels as pages of the first version have them.
fn levels(runs: &[(u8, u64)]) -> Vec<u8> {
    let runs = runs_of(runs);
    [&(runs.len() as u32).to_le_bytes()[..], &runs].concat()
}

fn indices(runs: &[(u8, u64)]) -> Vec<u8> {
    [vec![1], runs_of(runs)].concat()
}

/// What is counted of a column with a dictionary of a long and a short value.
fn copies(column: ParquetColumn, rows_together: u64) -> ParquetCopies {
    let mut copies = ParquetCopies::new(column, rows_together, MOST, false);
    let (page, bytes) = dictionary(&[10_000, 3]);
    assert!(copies.wants(&page));
    copies.count(&page, &bytes).unwrap();
    copies
}

fn too_large(bytes: u64) -> Result<(), PageFault> {
    Err(PageFault::TooLarge { bytes, most: MOST })
}

#[test]
fn a_long_value_counts_for_each_row_that_has_it() {
    let column = column([0, 0]);
    let mut counted = copies(column, 1_000);
    let hundred = page(column, 100, 0);
    assert!(counted.wants(&hundred));
    assert_eq!(counted.count(&hundred, &indices(&[(0, 100)])), Ok(()));
    assert_eq!(counted.count(&hundred, &indices(&[(0, 4), (1, 96)])), Ok(()));
    assert_eq!(counted.count(&hundred, &indices(&[(0, 9)])), too_large(1_000_000 + 40_000 + 288 + 90_000));
    // No more than the page has values.
    assert_eq!(copies(column, 1_000).count(&hundred, &indices(&[(0, 1 << 31)])), Ok(()));
    let beyond = copies(column, 1_000).count(&hundred, &[8, 2, 2]);
    assert!(matches!(beyond, Err(PageFault::Damage(why)) if why.contains("value 2 of a dictionary of 2")));
    let wide = copies(column, 1_000).count(&hundred, &[33, 2, 0]);
    assert!(matches!(wide, Err(PageFault::Damage(why)) if why.contains("33 bits")));
}

#[test]
fn what_decoders_read_in_two_ways_is_damage() {
    let told = |column: ParquetColumn, bytes: &[u8]| match copies(column, 1_000).count(&page(column, 100, 0), bytes) {
        Err(PageFault::Damage(why)) => why,
        other => panic!("{other:?}"),
    };
    let plain = column([0, 0]);
    // Of which a decoder takes 5 short ones, and long ones then.
    for times in [5 | 1 << 32, 1 << 40, 1 << 62] {
        assert!(told(plain, &indices(&[(1, times), (0, 95)])).contains(&format!("a run of {times} numbers")));
    }
    assert!(told(plain, &[vec![1], varint(1 << 31 | 1), vec![0; 40]].concat()).contains("a run of 1073741824 numbers"));
    // The number behind it may be what comes next.
    assert!(told(plain, &indices(&[(1, 0), (0, 100)])).contains("a run of 0 numbers"));
    // What is neither 0 nor 1 may be there.
    let nullable = column([0, 1]);
    let why = told(nullable, &[levels(&[(2, 100)]), indices(&[(0, 100)])].concat());
    assert_eq!(why, "a page has a level of 2, and its column has 1 at most");
}

#[test]
fn rows_that_are_not_decoded_together_do_not_count_together() {
    let column = column([0, 0]);
    let mut counted = copies(column, 1_000);
    for _ in 0..50 {
        assert_eq!(counted.count(&page(column, 1_000, 0), &indices(&[(0, 40), (1, 960)])), Ok(()));
        assert!(counted.pages.len() <= 2);
    }
    let mut counted = copies(column, 4_000);
    let told: Vec<_> = (0..3).map(|_| counted.count(&page(column, 1_000, 0), &indices(&[(0, 40), (1, 960)]))).collect();
    assert_eq!(told, [Ok(()), Ok(()), too_large(3 * (400_000 + 2_880))]);
}

#[test]
fn nulls_take_nothing_and_values_of_a_list_are_of_one_row() {
    let nullable = column([0, 1]);
    let half = levels(&[(0, 50), (1, 50)]);
    let mut counted = copies(nullable, 1_000);
    assert_eq!(counted.count(&page(nullable, 100, 0), &[half, indices(&[(0, 100)])].concat()), Ok(()));
    assert_eq!(counted.all.copied, 500_000);
    let nothing = levels(&[(0, 100)]);
    assert_eq!(counted.count(&page(nullable, 100, 0), &nothing), Ok(()), "all are null");
    // Each page is a row of a hundred values.
    let list = column([1, 0]);
    let one = [levels(&[(0, 1), (1, 99)]), indices(&[(0, 20), (1, 80)])].concat();
    let mut counted = copies(list, 10);
    let told: Vec<_> = (0..6).map(|_| counted.count(&page(list, 100, 0), &one)).collect();
    assert!(told[..5].iter().all(Result::is_ok), "{told:?}");
    assert_eq!(told[5], too_large(6 * 200_240));
    let mut counted = copies(list, 3);
    assert!((0..90).all(|_| counted.count(&page(list, 100, 0), &one) == Ok(())));
}

#[test]
fn what_is_short_or_not_copied_is_not_counted() {
    let column = column([0, 0]);
    let indices = page(column, 100, 0);
    for (lengths, rows_together, is_counted) in [([1_000, 3], 1_000, false), ([1_100, 3], 1_000, true), ([20, 3], 100_000, true)]
    {
        let mut counted = ParquetCopies::new(column, rows_together, MOST, false);
        assert!(!counted.wants(&indices), "there is no dictionary");
        let (dictionary, bytes) = dictionary(&lengths);
        counted.count(&dictionary, &bytes).unwrap();
        assert_eq!(counted.wants(&indices), is_counted, "{lengths:?}");
        let in_views = ParquetCopies::new(column, rows_together, MOST, true);
        assert!(!in_views.wants(&dictionary) && !in_views.wants(&indices));
    }
    let numbers = ParquetCopies::new(ParquetColumn { physical_type: 2, ..column }, 1_000, MOST, false);
    assert!(!numbers.wants(&dictionary(&[9]).0));
    let fixed = ParquetColumn { physical_type: FIXED_BYTES, type_length: 10_000, ..column };
    let mut counted = ParquetCopies::new(fixed, 1_000, MOST, false);
    let runs_of_fixed = |times| [vec![1], runs_of(&[(0, times)])].concat();
    assert!(counted.wants(&indices) && !counted.wants(&dictionary(&[9_996]).0), "its length is known");
    assert_eq!(counted.count(&dictionary(&[9_996]).0, &[7; 10_000]), Ok(()));
    assert_eq!(counted.count(&indices, &runs_of_fixed(100)), Ok(()));
    assert_eq!(counted.count(&page(fixed, 5, 0), &runs_of_fixed(5)), too_large(1_050_000));
    assert_eq!(counted.check_fixed(), Err(PageFault::TooLarge { bytes: 10_000_000, most: MOST }));
    for few in [ParquetColumn { values: 104, ..fixed }, ParquetColumn { type_length: 1_048, ..fixed }, column] {
        assert_eq!(ParquetCopies::new(few, 1_000, MOST, false).check_fixed(), Ok(()), "{few:?}");
    }
    let cut = ParquetCopies::new(column, 1_000, MOST, false).count(&dictionary(&[9]).0, &[9, 0, 0, 0, 1]);
    assert!(matches!(cut, Err(PageFault::Damage(_))));
}

#[test]
fn text_that_begins_as_the_one_before_it_counts_in_full() {
    let column = column([0, 0]);
    let stream = |length: i64| [varint(128), varint(4), varint(64), signed(length), signed(0), vec![0; 4]].concat();
    let bytes = [stream(10_000), stream(1)].concat();
    for in_views in [false, true] {
        let mut counted = ParquetCopies::new(column, 1_000, MOST, in_views);
        assert!(counted.wants(&page(column, 64, 2)));
        assert_eq!(counted.count(&page(column, 64, 2), &bytes), Ok(()));
        assert_eq!(counted.count(&page(column, 64, 2), &bytes), too_large(2 * 64 * 10_001));
    }
}

/// A page of values that stand in it in full, and become so many bytes.
fn plain(column: ParquetColumn, values: u32, becomes: u64) -> ParquetPage {
    let page = page(column, values, 0);
    ParquetPage { compressed: Some(ParquetCompressed { at: 1, becomes }), indices: None, plain: page.indices, ..page }
}

#[test]
fn long_values_that_were_compressed_count_where_they_are_decoded_together() {
    let column = column([0, 0]);
    for in_views in [false, true] {
        let counted = || ParquetCopies::new(column, 100, MOST, in_views);
        let page = plain(column, 10, MOST / 4);
        assert!(!counted().wants(&page), "its header says it all");
        let mut few = counted();
        let told: Vec<_> = (0..5).map(|_| few.pass(&page)).collect();
        assert!(told[..4].iter().all(Result::is_ok), "{told:?}");
        assert_eq!(told[4], too_large(5 * MOST / 4));
        // Two pages that are longer than a batch are there together, whatever they take.
        let mut long = counted();
        assert!((0..90).all(|_| long.pass(&plain(column, 100, MOST)) == Ok(())));
        // Where rows are left out, a batch may have a row of each page.
        let mut scattered = counted().scattered();
        let told: Vec<_> = (0..5).map(|_| scattered.pass(&plain(column, 1_000, MOST / 4))).collect();
        assert_eq!((&told[3], &told[4]), (&Ok(()), &too_large(5 * MOST / 4)));
        // What is not compressed has the bytes that the file has.
        let mut bare = counted();
        assert!((0..90).all(|_| bare.pass(&ParquetPage { compressed: None, ..page }) == Ok(())));
    }
    let mut numbers = ParquetCopies::new(ParquetColumn { physical_type: 2, ..column }, 100, MOST, false).scattered();
    assert!((0..90).all(|_| numbers.pass(&plain(column, 10, MOST)) == Ok(())), "a batch has as many as it has rows");
}

#[test]
fn rows_of_lists_are_looked_for_once_their_text_may_be_too_long() {
    let list = column([1, 0]);
    // Each page is a row of ten values.
    let bytes = levels(&[(0, 1), (1, 9)]);
    let page = plain(list, 10, MOST / 4);
    let after = |rows_together: u64, pages: usize| {
        let column = ParquetColumn { values: 1_000, ..list };
        let mut counted = ParquetCopies::new(column, rows_together, MOST, false);
        let mut told = Vec::new();
        for _ in 0..pages {
            told.push(if counted.wants(&page) { counted.count(&page, &bytes) } else { counted.pass(&page) });
        }
        told
    };
    assert!(after(2, 90).iter().all(Result::is_ok), "four of them at most are there together");
    let told = after(5, 5);
    assert!(told[..4].iter().all(Result::is_ok), "{told:?}");
    assert_eq!(told[4], too_large(5 * MOST / 4));
}

#[test]
fn values_of_a_nested_column_count_for_the_rows_that_have_them() {
    let column = |physical_type: i32, values: i64| ParquetColumn {
        physical_type,
        type_length: 100,
        values,
        is_compressed: false,
        levels: [1, 1],
    };
    let nulls = |times: u64| [levels(&[(0, 1), (1, times - 1)]), levels(&[(0, times)])].concat();
    let times = 1 << 20;
    for (physical_type, value) in [(0, 13), (1, 16), (2, 20), (3, 28), (4, 16), (5, 20), (6, 28), (7, 112)] {
        let column = column(physical_type, 4 * times);
        let page = plain(column, times as u32, 0);
        let mut counted = ParquetCopies::new(column, 100, MOST, true);
        assert!(counted.wants(&page), "{physical_type}");
        assert_eq!(counted.count(&page, &nulls(times as u64)), too_large(value * times as u64), "{physical_type}");
        let mut scattered = ParquetCopies::new(column, 100, MOST, true).scattered();
        assert!(!scattered.wants(&page), "{physical_type}: its header says it all");
        assert_eq!(scattered.pass(&page), too_large(value * times as u64), "{physical_type}");
    }
    // As many values of many rows, of which a batch has a hundred.
    let many = column(2, 4 * times);
    let page = plain(many, times as u32, 0);
    let mut counted = ParquetCopies::new(many, 100, MOST, true);
    let rows = [levels(&[(0, times as u64)]), levels(&[(0, times as u64)])].concat();
    assert!((0..4).all(|_| counted.count(&page, &rows) == Ok(())));
    // However many rows a batch may have, no more of them are kept than may have a value each.
    let mut counted = ParquetCopies::new(many, u64::MAX, MOST, true);
    assert_eq!(counted.count(&page, &rows), too_large((MOST / 12 + 1) * 20));
    // Few values are not looked at, and no more come than the footer says.
    let few = column(2, 1_000);
    let page = plain(few, 600, 0);
    let mut counted = ParquetCopies::new(few, 100, MOST, true);
    assert!(!counted.wants(&page));
    assert_eq!(counted.pass(&page), Ok(()));
    let why = "its pages have 1200 values, and its column has 1000".to_string();
    assert_eq!(counted.pass(&page), Err(PageFault::Damage(why)));
}

/// In packs of eight.
fn packs(values: &[u64], bits: u32) -> Vec<u8> {
    let count = values.len().div_ceil(8);
    let mut packed = vec![0_u8; count * bits as usize];
    for (place, value) in values.iter().enumerate() {
        for bit in (0..bits as usize).filter(|bit| (value >> bit) & 1 == 1) {
            let at = place * bits as usize + bit;
            packed[at / 8] |= 1 << (at % 8);
        }
    }
    [varint((count as u64) << 1 | 1), packed].concat()
}

proptest! {
    #[test]
    fn numbers_are_read_from_runs_and_packs(
        bits in 0_u32..=32,
        parts in proptest::collection::vec((any::<u32>(), 1_usize..60, any::<bool>()), 0..9),
        fewer in 0_u64..9,
    ) {
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        for (seed, count, in_packs) in parts {
            let number = |place: usize| u64::from(seed.rotate_left(place as u32)) & ((1 << bits) - 1);
            if in_packs {
                let count = count.next_multiple_of(8);
                let part: Vec<u64> = (0..count).map(number).collect();
                bytes.extend(packs(&part, bits));
                values.extend(part);
            } else {
                bytes.extend(varint((count as u64) << 1));
                bytes.extend(&number(0).to_le_bytes()[..bits.div_ceil(8) as usize]);
                values.extend(std::iter::repeat_n(number(0), count));
            }
        }
        let count = (values.len() as u64).saturating_sub(fewer);
        let mut read = Vec::new();
        let told = runs(&mut Reader::new(&bytes), bits, count, |value, times| {
            read.extend(std::iter::repeat_n(value, times as usize));
            Ok(())
        });
        prop_assert_eq!(told, Ok(()));
        prop_assert_eq!(&read[..], &values[..count as usize]);
    }

    #[test]
    fn what_is_counted_is_never_less_than_what_any_batch_takes(
        pages in proptest::collection::vec((1_u32..60, 0_u64..400_000), 1..40),
        rows_together in 1_u64..200,
        is_scattered in any::<bool>(),
        picked in proptest::collection::vec(any::<prop::sample::Index>(), 1..200),
        from in any::<prop::sample::Index>(),
    ) {
        let column = column([0, 0]);
        let counted = ParquetCopies::new(column, rows_together, MOST, true);
        let mut counted = if is_scattered { counted.scattered() } else { counted };
        let told = pages.iter().try_for_each(|(values, becomes)| counted.pass(&plain(column, *values, *becomes)));
        // The page of each row, and those of a batch, which has all pages that it has rows of.
        let rows: Vec<usize> =
            pages.iter().enumerate().flat_map(|(page, (values, _))| std::iter::repeat_n(page, *values as usize)).collect();
        let mut batch: Vec<usize> = if is_scattered {
            picked.iter().take(rows_together as usize).map(|at| rows[at.index(rows.len())]).collect()
        } else {
            rows[from.index(rows.len())..].iter().copied().take(rows_together as usize).collect()
        };
        batch.sort_unstable();
        batch.dedup();
        let takes: u64 = batch.iter().map(|page| pages[*page].1).sum();
        prop_assert!(told.is_err() || takes <= MOST.max(2 * 400_000), "{takes} bytes");
        let all: u64 = pages.iter().map(|(_, becomes)| becomes).sum();
        prop_assert!(told.is_ok() || all > MOST, "what all of it takes may be");
    }

    #[test]
    fn any_bytes_are_pages_or_a_fault(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        levels in (0_i16..3, 0_i16..3),
    ) {
        let column = column([levels.0, levels.1]);
        for streams in 0..3 {
            let _ = copies(column, 100).count(&page(column, 1_000, streams), &bytes);
        }
        let (dictionary, _) = dictionary(&[3, 5]);
        let _ = copies(column, 100).count(&dictionary, &bytes);
    }
}
