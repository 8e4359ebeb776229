//! Any range says which version it is of, and what is wrong with it.

use forebay_oracle::contents::{RANGE_BYTES_MIN, Seen, bytes, identify, size};

#[test]
fn every_range_names_its_version() {
    let whole = bytes(3, 7);
    assert_eq!(whole.len() as u64, size(3, 7));
    for start in [0, 1, 15, 16, 17, 4095, 4096] {
        for len in [RANGE_BYTES_MIN, RANGE_BYTES_MIN + 1, 100, 5000] {
            let range = start as usize..(start + len) as usize;
            assert_eq!(identify(3, start, len, &whole[range]), Seen::Version(7), "{len} bytes from {start}");
        }
    }
}

#[test]
fn a_range_that_goes_past_the_end_is_whole_without_the_rest() {
    let whole = bytes(3, 7);
    assert_eq!(identify(3, 0, u64::MAX, &whole), Seen::Version(7));
    let (start, end) = (whole.len() - 100, whole.len());
    assert_eq!(identify(3, start as u64, 1000, &whole[start..]), Seen::Version(7));
    let short = identify(3, start as u64, 1000, &whole[start..end - 1]);
    assert_eq!(short, Seen::Length { version: 7, expected: 100, came: 99 });
}

#[test]
fn bytes_of_two_versions_are_told_with_their_place() {
    let (old, new) = (bytes(3, 7), bytes(3, 8));
    let both = [&old[..4096], &new[4096..8192]].concat();
    // The two versions differ in the second number of a record.
    assert_eq!(identify(3, 0, 8192, &both), Seen::Mixed { first: 7, at: 4096 + 4 });
}

#[test]
fn bytes_of_another_place_or_of_nobody_are_told() {
    let whole = bytes(3, 7);
    assert!(matches!(identify(3, 64, 100, &whole[..100]), Seen::Mixed { first: 7, .. }));
    assert_eq!(identify(4, 0, 100, &whole[..100]), Seen::Foreign);
    assert_eq!(identify(3, 0, 100, &[0; 100]), Seen::Foreign);
    assert_eq!(identify(3, 0, 100, b""), Seen::Foreign);
}
