//! Substring search over flat text, against looking everywhere.

use forebay_shard::{FlatText, LayerId, build_flat};
use proptest::prelude::*;

fn occurrences(text: &[u8], pattern: &[u8]) -> Vec<u32> {
    text.windows(pattern.len()).enumerate().filter(|(_, window)| *window == pattern).map(|(at, _)| at as u32).collect()
}

fn check(text: &[u8], flat: &FlatText, patterns: &[Vec<u8>]) {
    for pattern in patterns.iter().filter(|pattern| !pattern.is_empty()) {
        let expected = occurrences(text, pattern);
        assert_eq!(flat.search(pattern), expected, "{pattern:?} in {text:?}");
        assert_eq!(flat.count(pattern), expected.len() as u64);
        if let Some(at) = expected.first() {
            assert_eq!(flat.extract(u64::from(*at), pattern.len()), *pattern);
        }
    }
    assert_eq!(flat.extract(0, usize::MAX), text);
    let middle = text.len() / 2;
    assert_eq!(flat.extract(middle as u64, 7), &text[middle..text.len().min(middle + 7)]);
}

/// Adds every layer there is, and does `after` once each is in.
fn fill(flat: &FlatText, after: impl Fn()) -> Vec<LayerId> {
    let ids = flat.dial(1e9, true);
    let builder = flat.layer_builder(&ids).unwrap();
    builder.steps().into_iter().for_each(|step| builder.run(step));
    for (_, part) in builder.finish().unwrap() {
        flat.add_layer(part).unwrap();
        after();
    }
    ids
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_rate_gives_the_same_answers(
        text in prop::collection::vec(prop_oneof![4 => Just(b'a'), 2 => Just(b'b'), 1 => 0u8..100], 0..600),
        mut patterns in prop::collection::vec(prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), 0u8..100], 1..4), 4),
    ) {
        patterns.extend(text.chunks(9).take(5).map(<[u8]>::to_vec));
        let built = build_flat(&text, 0.0).unwrap();
        let flat = FlatText::open(built.base, []).unwrap();
        check(&text, &flat, &patterns);
        let ids = fill(&flat, || check(&text, &flat, &patterns));
        for id in ids.into_iter().rev() {
            flat.replace_layers(&[id], &[]);
            prop_assert!(flat.layers().iter().all(|layer| layer.id != id));
        }
        check(&text, &flat, &patterns);
    }
}

#[test]
fn the_dial_goes_from_coarse_to_fine() {
    let text: Vec<u8> = (0..40_000u32).map(|at| b'a' + (at.wrapping_mul(2_654_435_761) >> 28) as u8).collect();
    let flat = FlatText::open(build_flat(&text, 0.0).unwrap().base, []).unwrap();
    let (small, large) = (flat.dial(flat.ratio() + 0.3, false), flat.dial(flat.ratio() + 2.0, false));
    assert!(!small.is_empty() && small.len() < large.len());
    assert_eq!(large[..small.len()], small);
    assert!(large.windows(2).all(|two| two[0].which >= two[1].which));
}

#[test]
fn text_of_all_256_bytes_is_searched_too() {
    // The lowest bytes, which take two symbols, stand everywhere among the others.
    let mut text: Vec<u8> = (0..3000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    text.extend((0..=255).chain([0, 0, 1, 0, 5, 6, 255, 0]));
    text.extend((0..600u32).map(|at| (at % 7) as u8));
    let mut patterns: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    patterns.extend(text.chunks(13).map(<[u8]>::to_vec));
    patterns.extend([vec![0, 0], vec![1, 0, 5], vec![5, 6, 0, 1], vec![4, 5], vec![255, 0]]);
    let built = build_flat(&text, 0.0).unwrap();
    let flat = FlatText::open(built.base, []).unwrap();
    check(&text, &flat, &patterns);
    fill(&flat, || ());
    check(&text, &flat, &patterns);
    for offset in [1, 127, 128, 129, 2999, 3001, 3100] {
        assert_eq!(flat.extract(offset, 200), &text[offset as usize..][..200]);
    }
}
