//! Pages as honest writers and others have them.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;

const MOST: u64 = 1 << 20;

/// A column of numbers of 64 bits.
const NUMBERS: ParquetColumn =
    ParquetColumn { physical_type: 2, type_length: 0, values: 1_000, is_compressed: true, levels: [0, 0] };

pub(super) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

pub(super) fn signed(value: i64) -> Vec<u8> {
    varint(((value << 1) ^ (value >> 63)) as u64)
}

/// Fields of a struct: how much further each number is than the one before, its type, and its value.
fn fields(fields: &[(u8, u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        fields.iter().flat_map(|(further, kind, value)| [&[(further << 4) | kind], &value[..]].concat()).collect();
    bytes.push(0);
    bytes
}

fn number(further: u8, value: i64) -> (u8, u8, Vec<u8>) {
    (further, 5, signed(value))
}

/// A header with the sizes that it says, and the part that its kind has, whose field has this number.
fn header(kind: i64, [decoded, kept]: [i64; 2], (id, part): (u8, Vec<u8>)) -> Vec<u8> {
    fields(&[number(1, kind), number(1, decoded), number(1, kept), (id - 3, 12, part)])
}

fn statistics() -> Vec<u8> {
    fields(&[(1, 8, [varint(4), b"most".to_vec()].concat()), (2, 6, signed(3)), (4, 1, Vec::new())])
}

fn data(values: i64, sizes: [i64; 2]) -> Vec<u8> {
    header(0, sizes, (5, fields(&[number(1, values), number(1, 8), number(1, 3), number(1, 3), (1, 12, statistics())])))
}

fn data_2(values: i64, sizes: [i64; 2]) -> Vec<u8> {
    let numbers = [values, 0, values, 8, 0, 0].map(|value| number(1, value));
    header(3, sizes, (8, fields(&[&numbers[..], &[(1, 2, Vec::new()), (1, 12, statistics())]].concat())))
}

fn dictionary(values: i64, sizes: [i64; 2]) -> Vec<u8> {
    header(2, sizes, (7, fields(&[number(1, values), number(1, 2), (1, 1, Vec::new())])))
}

fn index(sizes: [i64; 2]) -> Vec<u8> {
    header(1, sizes, (6, fields(&[])))
}

fn page(header: Vec<u8>, bytes: usize) -> Vec<u8> {
    [header, vec![7; bytes]].concat()
}

/// For pages of which the header alone is looked at.
fn nothing(_page: &ParquetPage, _place: Range<usize>) -> Result<(), PageFault> {
    Ok(())
}

fn fault(column: ParquetColumn, bytes: &[u8]) -> PageFault {
    column.check(bytes, MOST, nothing).unwrap_err()
}

fn damage_of(column: ParquetColumn, bytes: &[u8]) -> String {
    match fault(column, bytes) {
        PageFault::Damage(why) => why,
        other => panic!("{other:?}"),
    }
}

fn honest() -> Vec<Vec<u8>> {
    vec![
        page(dictionary(100, [800, 90]), 90),
        page(data(600, [4_000, 300]), 300),
        page(index([40, 10]), 10),
        page(data_2(400, [3_000, 0]), 0),
    ]
}

#[test]
fn pages_of_honest_writers_are_found() {
    let pages = honest();
    let bytes = pages.concat();
    let found: Vec<_> = NUMBERS.pages(&bytes, MOST, nothing).map(Result::unwrap).collect();
    let mut at = 0;
    for (found, page) in found.iter().zip(&pages) {
        assert_eq!(*found, at..at + page.len());
        at = found.end;
    }
    assert_eq!((found.len(), at), (pages.len(), bytes.len()));
    assert_eq!(NUMBERS.check(&[], MOST, nothing), Ok(()));
}

#[test]
fn fields_that_are_new_are_passed_over() {
    let sizes = [number(1, 0), number(1, 64), number(1, 8)];
    let values = (2, 12, fields(&[number(1, 5), number(1, 0), number(1, 3), number(1, 3)]));
    let list = |kind: u8, values: &[Vec<u8>]| [&[((values.len() as u8) << 4) | kind], &values.concat()[..]].concat();
    let new = [
        (9, 9, list(8, &[varint(0), [varint(2), vec![1, 2]].concat()])),
        (1, 11, [varint(1), vec![0x5c], signed(-9), statistics()].concat()),
        (1, 7, vec![0; 8]),
        (1, 13, vec![0; 16]),
        (1, 3, vec![9]),
        (1, 10, vec![0]),
    ];
    // Numbers that are not in order are written in full.
    let back = [vec![0x05], signed(4), signed(77)].concat();
    let fields = fields(&[&sizes[..], &[values], &new[..]].concat());
    let header = [&fields[..fields.len() - 1], &back[..], &[0]].concat();
    assert_eq!(NUMBERS.check(&page(header, 8), MOST, nothing), Ok(()));
}

#[test]
fn a_dictionary_has_the_bytes_of_its_values() {
    let values = |physical_type, type_length| {
        let column = ParquetColumn { physical_type, type_length, ..NUMBERS };
        let fits = |values: i64| column.check(&page(dictionary(values, [120, 4]), 4), MOST, nothing).is_ok();
        (0..2_000).take_while(|values| fits(*values)).last().unwrap()
    };
    let kinds = [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 24), (7, 0), (7, -3), (9, 0)];
    assert_eq!(kinds.map(|(kind, length)| values(kind, length)), [960, 30, 15, 10, 30, 15, 30, 5, 1, 1, 0]);
    for lie in [16, 1 << 30, i64::from(i32::MAX), -1, i64::from(i32::MIN)] {
        let why = damage_of(NUMBERS, &page(dictionary(lie, [120, 4]), 4));
        assert!(why.contains("dictionary") && why.contains(&lie.to_string()), "{why}");
    }
    // What is not compressed has no more bytes than are there.
    let plain = ParquetColumn { is_compressed: false, ..NUMBERS };
    assert!(damage_of(plain, &page(dictionary(15, [120, 4]), 4)).contains("4 bytes"));
    assert_eq!(plain.check(&page(dictionary(15, [0, 120]), 120), MOST, nothing), Ok(()));
}

#[test]
fn a_page_has_no_more_values_than_its_column() {
    for make in [data, data_2] {
        assert_eq!(NUMBERS.check(&page(make(1_000, [8, 8]), 8), MOST, nothing), Ok(()));
        for lie in [1_001, i64::from(i32::MAX), -1] {
            let why = damage_of(NUMBERS, &page(make(lie, [8, 8]), 8));
            assert!(why.contains(&format!("{lie} values")), "{why}");
        }
    }
    let none = ParquetColumn { values: -1, ..NUMBERS };
    assert!(damage_of(none, &page(data(0, [8, 8]), 8)).contains("0 values"));
}

#[test]
fn sizes_are_those_of_what_is_there() {
    for make in [data, data_2, dictionary] {
        assert!(damage_of(NUMBERS, &page(make(1, [8, 9]), 8)).contains("9 bytes, and 8 are left"));
        assert!(damage_of(NUMBERS, &page(make(1, [8, -1]), 8)).contains("-1 bytes"));
        assert!(damage_of(NUMBERS, &page(make(1, [-8, 8]), 8)).contains("-8 bytes"));
        let large = PageFault::TooLarge { bytes: MOST + 1, most: MOST };
        assert_eq!(fault(NUMBERS, &page(make(1, [MOST as i64 + 1, 8]), 8)), large);
        assert_eq!(NUMBERS.check(&page(make(1, [MOST as i64, 8]), 8), MOST, nothing), Ok(()));
    }
    let error = Error::from(PageFault::TooLarge { bytes: 2 << 30, most: MOST });
    assert!(error.kind() == forebay_types::ErrorKind::Invalid && error.message().contains("1.00 MiB are the most"), "{error}");
    let twice = [page(data(1, [8, 8]), 8), page(data(1, [8, 8]), 7)].concat();
    assert!(damage_of(NUMBERS, &twice).contains("8 bytes, and 7 are left"));
}

#[test]
fn headers_that_readers_may_take_for_something_else_are_refused() {
    let values = || (2, 12, fields(&[number(1, 5)]));
    let sizes = || [number(1, 0), number(1, 8), number(1, 0)];
    let long = (3, 5, vec![0xff; 12]);
    for (header, says) in [
        (fields(&[number(1, 0), number(1, 8), (3, 12, fields(&[number(1, 5)]))]), "missing"),
        (fields(&sizes()), "missing"),
        (fields(&[&sizes()[..], &[(2, 12, fields(&[number(2, 5)]))]].concat()), "missing"),
        (fields(&[&sizes()[..], &[(2, 5, signed(1))]].concat()), "another type"),
        (fields(&[&sizes()[..], &[(2, 12, fields(&[(1, 6, signed(5))]))]].concat()), "another type"),
        (fields(&[number(1, 4), number(1, 8), number(1, 0), values()]), "no such page"),
        (fields(&[&sizes()[..], &[values(), (9, 9, vec![0xf1, 0xff, 0xff, 0x03])]].concat()), "true or false"),
        (fields(&[&sizes()[..], &[values(), (9, 14, vec![])]].concat()), "no type"),
        (fields(&[&sizes()[..], &[values(), (9, 12, [0x1c].repeat(100))]].concat()), "too deep"),
        (fields(&[&sizes()[..], &[(2, 12, fields(&[long]))]].concat()), "no end"),
        (fields(&[number(1, 0), number(1, 1 << 40), number(1, 0), values()]), "too large"),
    ] {
        let why = damage_of(NUMBERS, &header);
        assert!(why.contains(says), "{says}: {why}");
    }
}

#[test]
fn a_header_that_is_cut_asks_for_more_where_there_is_more() {
    let whole = page(data(5, [8, 8]), 8);
    let length = whole.len() - 8;
    for end in 0..whole.len() {
        let told = NUMBERS.page(&whole[..end], whole.len() as u64, MOST).map(|page| page.map(|page| page.bytes));
        assert_eq!(told, Ok((end >= length).then_some(whole.len() as u64)), "{end}");
        assert!(end == 0 || NUMBERS.check(&whole[..end], MOST, nothing).is_err());
    }
    // A text that is longer than all that there is takes no memory.
    let long = fields(&[(9, 8, varint(u64::MAX))]);
    assert_eq!(NUMBERS.page(&long, 1 << 40, MOST), Ok(None));
    assert!(damage_of(NUMBERS, &long).contains("within the header"));
}

#[test]
fn text_in_a_delta_encoding_is_looked_at_and_no_other_page() {
    let nullable = ParquetColumn { physical_type: 6, levels: [0, 1], ..NUMBERS };
    let levels: [&[u8]; 2] = [&[2, 0, 0, 0, 10, 1], &[10, 1]];
    for (version, levels) in levels.into_iter().enumerate() {
        for encoding in 0..10 {
            let (kind, id, numbers) = match version {
                0 => (0, 5, vec![5, encoding, 3, 3]),
                _ => (3, 8, vec![5, 0, 5, encoding, 2, 0]),
            };
            let part = fields(&numbers.into_iter().map(|value| number(1, value)).collect::<Vec<_>>());
            let bytes = page(header(kind, [90, 8], (id, part)), 8);
            let told = |lengths: u64| {
                let looks = Cell::new(0);
                let lengths = [varint(128), varint(4), varint(lengths), signed(3), vec![0; 5]].concat();
                let told = nullable.check(&bytes, MOST, |page, place| {
                    assert_eq!(place, 0..bytes.len());
                    let Some(text) = page.text else { return Ok(()) };
                    looks.set(looks.get() + 1);
                    text.check(&[levels, &lengths[..], &lengths[..]].concat(), MOST)
                });
                (told, looks.get())
            };
            if !matches!(encoding, 6 | 7) {
                assert_eq!(told(1 << 40), (Ok(()), 0));
                continue;
            }
            assert_eq!(told(5), (Ok(()), 1));
            let (lies, looks) = told(1 << 40);
            let says = "1099511627776 lengths, and has 5 values";
            assert!(looks == 1 && matches!(&lies, Err(PageFault::Damage(why)) if why.contains(says)), "{lies:?}");
        }
    }
    let without_levels = fields(&[number(1, 5), number(1, 6)]);
    assert!(damage_of(NUMBERS, &page(header(0, [8, 8], (5, without_levels)), 8)).contains("missing"));
}

#[test]
fn what_of_a_page_is_compressed_is_told() {
    let compressed = |column: ParquetColumn, bytes: &[u8]| {
        let page = column.page(bytes, bytes.len() as u64, MOST).unwrap().unwrap();
        page.compressed.map(|part| (page.bytes - part.at, part.becomes))
    };
    let plain = ParquetColumn { is_compressed: false, ..NUMBERS };
    for make in [data, dictionary] {
        assert_eq!(compressed(NUMBERS, &page(make(1, [90, 8]), 8)), Some((8, 90)));
        assert_eq!(compressed(NUMBERS, &page(make(0, [0, 8]), 8)), None, "nothing comes out of it");
        assert_eq!(compressed(plain, &page(make(1, [90, 8]), 8)), None);
    }
    assert_eq!(compressed(NUMBERS, &page(index([90, 8]), 8)), Some((8, 90)));
    assert_eq!(compressed(NUMBERS, &page(data_2(1, [90, 8]), 8)), None, "it says so itself");
    // Levels stand before what is compressed, whatever kind the page is of.
    let second = |kind: i64, [definition, repetition]: [i64; 2], says: Option<u8>| {
        let mut part: Vec<_> = [1, 0, 1, 8, definition, repetition].map(|value| number(1, value)).to_vec();
        part.extend(says.map(|says| (1, says, Vec::new())));
        let first = fields(&[number(1, 1), number(1, 8), number(1, 3), number(1, 3)]);
        let sizes = [number(1, kind), number(1, 90), number(1, 8)];
        page(fields(&[&sizes[..], &[(2, 12, first), (3, 12, fields(&part))]].concat()), 8)
    };
    for kind in [0, 3] {
        assert_eq!(compressed(NUMBERS, &second(kind, [2, 3], None)), Some((3, 85)));
        assert_eq!(compressed(NUMBERS, &second(kind, [2, 3], Some(1))), Some((3, 85)));
        assert_eq!(compressed(NUMBERS, &second(kind, [2, 3], Some(2))), None);
        for lie in [[9, 0], [4, 5], [-1, 0], [0, -1], [i64::from(i32::MAX); 2]] {
            assert!(damage_of(NUMBERS, &second(kind, lie, None)).contains("its levels have"), "{lie:?}");
        }
    }
}

proptest! {
    #[test]
    fn whatever_pages_say_they_lie_behind_each_other_and_keep_to_the_bounds(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = honest().concat();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        bytes.truncate(bytes.len() - cut.index(20));
        let mut at = 0;
        for page in NUMBERS.pages(&bytes, MOST, nothing) {
            let Ok(page) = page else { break };
            prop_assert!(page.start == at && page.end > at && page.end <= bytes.len());
            let header = Header::read(&mut Reader::new(&bytes[page.clone()])).unwrap();
            prop_assert!((0..=MOST as i64).contains(&i64::from(header.uncompressed)));
            match header.page {
                Page::Data(values, ..) => prop_assert!((0..=1_000).contains(&values)),
                Page::Dictionary(values) => prop_assert!(values >= 0 && values.unsigned_abs() <= header.uncompressed as u32 / 8),
                Page::Index => {}
            }
            at = page.end;
        }
    }

    #[test]
    fn any_bytes_are_pages_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let found = NUMBERS.pages(&bytes, MOST, nothing).count();
        prop_assert!(found <= bytes.len());
    }
}
