//! Whether a scan has decoded rows sent that a worker of another host selects, or reads the file's own bytes.

use forebay_types::{Comparison, RowTest};

use crate::learned::{doubt, learn};

/// Share of the file's bytes that an answer may have: it must save more than asking first takes where the answer is no.
const WORTH: f64 = 0.7;
/// Bytes that an answer has beside its rows, about: what a table says of itself and of each of its columns.
const TABLE_BYTES: f64 = 512.0;
const COLUMN_BYTES: f64 = 128.0;
/// An answer has at most this many bytes; larger parts of a file are read raw.
const ANSWER_BYTES_MAX: u64 = 32 << 20;
/// Weight of what an answer had, against what was expected.
const LATEST: f64 = 0.3;
/// What of a mistaken expectation is left after a part that was not asked for because of it.
const DOUBT: f64 = 0.9;
/// Most parts that are read raw in a row after answers that did not fit.
const PAUSE_MAX: u32 = 64;
/// Share of the rows that is taken to meet a test of which nothing is known: a bound, and one value.
const UNKNOWN_SHARE: f64 = 0.1;
const UNKNOWN_EQUAL: f64 = 0.01;

/// A row group or chunk whose rows a scan could have sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarPart {
    /// Bytes that the file has of the columns.
    pub raw_bytes: u64,
    /// Columns.
    pub columns: usize,
    /// Rows; none where that is not known.
    pub rows: Option<u64>,
    /// Bytes of a row in the decoded form, about.
    pub row_bytes: f64,
    /// Share of the rows that is wanted, about.
    pub share: f64,
}

impl FarPart {
    fn expected(&self) -> Option<f64> {
        // A file may say of itself what can't be: less than nothing, or no number.
        let rows = self.rows? as f64 * self.share.clamp(0.0, 1.0).max(0.0);
        Some(rows * self.row_bytes.max(0.0) + TABLE_BYTES + COLUMN_BYTES * self.columns as f64)
    }
}

/// What a scan has learnt of the answers that it got. It never has more sent than it would read of the file: each question says what the
/// answer may have, and one that did not fit makes the scan read the next parts raw, each time in a row twice as many.
#[derive(Clone, Debug)]
pub struct FarScan {
    /// What answers had by what was expected of them.
    ratio: f64,
    passing: u32,
    pause: u32,
}

impl Default for FarScan {
    fn default() -> Self {
        Self { ratio: 1.0, passing: 0, pause: 1 }
    }
}

impl FarScan {
    /// The bytes that an answer of a worker may have; none where the part is to be read raw.
    pub fn ask(&mut self, part: &FarPart) -> Option<u64> {
        debug_assert!(self.ratio >= 0.0 && self.pause > 0, "what answers have is not below nothing: {self:?}");
        let most = ((part.raw_bytes as f64 * WORTH) as u64).min(ANSWER_BYTES_MAX);
        if self.passing > 0 {
            self.passing -= 1;
            return None;
        }
        match part.expected() {
            Some(expected) if expected * self.ratio > most as f64 => {
                doubt(&mut self.ratio, 1.0, DOUBT);
                None
            }
            Some(_) => Some(most),
            None => (most as f64 > TABLE_BYTES).then_some(most),
        }
    }

    /// Bytes that an answer of at most `most` is expected to have; these where nothing is known.
    pub fn expects(&self, part: &FarPart, most: u64) -> u64 {
        part.expected().map_or(most, |expected| ((expected * self.ratio) as u64).min(most))
    }

    /// An answer had so many bytes.
    pub fn fitted(&mut self, part: &FarPart, bytes: u64) {
        self.pause = 1;
        if let Some(expected) = part.expected() {
            learn(&mut self.ratio, bytes as f64 / expected, LATEST);
        }
    }

    /// An answer would have had too many.
    pub fn did_not_fit(&mut self) {
        self.passing = self.passing.max(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}

/// What is known of a column's values in a row group, as numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarColumn {
    /// No value is below.
    pub min: f64,
    /// No value is above.
    pub max: f64,
    /// Whether only whole numbers lie between.
    pub is_whole: bool,
    /// Share of the rows that have none.
    pub nulls: f64,
}

impl FarColumn {
    /// Share of the values that compare so, if they are spread evenly.
    fn share(&self, by: Comparison, value: f64) -> f64 {
        let (least, most) = (self.min.min(self.max), self.min.max(self.max));
        let span = most - least;
        let is_outside = value < least || value > most;
        let equal = match (is_outside, self.is_whole) {
            (true, _) => 0.0,
            (false, true) => 1.0 / (span + 1.0),
            (false, false) if span == 0.0 => 1.0,
            (false, false) => UNKNOWN_EQUAL,
        };
        let below = if span > 0.0 { ((value - least) / span).clamp(0.0, 1.0) } else { f64::from(value > least) };
        let share = match by {
            Comparison::Equal => equal,
            Comparison::Different => 1.0 - equal,
            Comparison::Less => below,
            Comparison::AtMost => below + equal,
            Comparison::Greater => 1.0 - below - equal,
            Comparison::AtLeast => 1.0 - below,
        };
        // Bounds that are too far from each other for a number.
        let share = if share.is_nan() { UNKNOWN_SHARE } else { share.clamp(0.0, 1.0) };
        debug_assert!((0.0..=1.0).contains(&share), "{share} of the values");
        share * (1.0 - self.nulls.clamp(0.0, 1.0))
    }
}

/// Share of the rows that meet a condition that has been checked, about. `known` has what is known of a column and `number` a value of
/// it; what is tested of several columns is taken to be independent.
pub fn far_share(tests: &[RowTest], known: impl Fn(u32) -> Option<FarColumn>, number: impl Fn(u32, &[u8]) -> Option<f64>) -> f64 {
    let one = |column: u32, by: Comparison, value: &[u8]| match (known(column), number(column, value)) {
        (Some(known), Some(value)) => known.share(by, value),
        _ => match by {
            Comparison::Equal => UNKNOWN_EQUAL,
            Comparison::Different => 1.0 - UNKNOWN_EQUAL,
            _ => UNKNOWN_SHARE,
        },
    };
    let mut shares: Vec<f64> = Vec::new();
    for test in tests {
        let share = match test {
            RowTest::Compare { column, by, value } => one(*column, *by, value),
            RowTest::OneOf { column, values, negated } => {
                let any: f64 = values.iter().map(|value| one(*column, Comparison::Equal, value)).sum();
                if *negated { 1.0 - any.min(1.0) } else { any.min(1.0) }
            }
            RowTest::Null { column, negated } => {
                let nulls = known(*column).map_or(UNKNOWN_SHARE, |known| known.nulls);
                if *negated { 1.0 - nulls } else { nulls }
            }
            RowTest::And | RowTest::Or => {
                let (one, other) = (shares.pop().unwrap_or(1.0), shares.pop().unwrap_or(1.0));
                if *test == RowTest::And { one * other } else { one + other - one * other }
            }
        };
        shares.push(share);
    }
    debug_assert!(shares.len() <= 1, "a condition that was checked ends with one");
    shares.pop().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A row group of a million rows of 8 bytes, of which the file has a quarter.
    fn part(share: f64) -> FarPart {
        FarPart { raw_bytes: 2 << 20, columns: 1, rows: Some(1 << 20), row_bytes: 8.0, share }
    }

    #[test]
    fn few_rows_are_sent_and_many_are_read() {
        let mut scan = FarScan::default();
        assert_eq!(scan.ask(&part(0.01)), Some(((2u64 << 20) as f64 * WORTH) as u64));
        assert_eq!(scan.ask(&part(1.0)), None, "the file's bytes are fewer");
        let hundredth = part(0.01).expected().unwrap() as u64;
        assert_eq!((scan.expects(&part(0.01), 1 << 20), scan.expects(&part(0.01), 100)), (hundredth, 100));
        assert_eq!(scan.expects(&FarPart { rows: None, ..part(1.0) }, 4096), 4096, "as many as there may be");
        assert!(scan.ask(&FarPart { rows: None, ..part(1.0) }).is_some(), "the worker knows");
        assert_eq!(scan.ask(&FarPart { raw_bytes: 600, rows: None, ..part(1.0) }), None, "hardly anything to save");
        assert!(scan.ask(&FarPart { raw_bytes: u64::MAX, ..part(0.01) }).unwrap() <= ANSWER_BYTES_MAX);
    }

    #[test]
    fn what_a_file_says_wrongly_of_itself_leaves_a_scan_as_it_is() {
        for wrong in [f64::NAN, -1e12] {
            let mut scan = FarScan::default();
            for part in [FarPart { row_bytes: wrong, ..part(0.5) }, part(wrong)] {
                assert!(scan.ask(&part).is_some());
                scan.fitted(&part, 100);
            }
            assert!((0.0..=1.0).contains(&scan.ratio), "{}", scan.ratio);
        }
    }

    #[test]
    fn answers_that_do_not_fit_make_a_scan_read_raw_for_longer_and_longer() {
        let mut scan = FarScan::default();
        let mut asked = 0;
        for _ in 0..1000 {
            if scan.ask(&part(0.01)).is_some() {
                asked += 1;
                scan.did_not_fit();
            }
        }
        assert!((8..=24).contains(&asked), "{asked}");
    }

    #[test]
    fn an_answer_that_fits_ends_the_pauses() {
        let mut scan = FarScan::default();
        let expected = part(0.01).expected().unwrap() as u64;
        let raw_until_asked = |scan: &mut FarScan| (0..100).position(|_| scan.ask(&part(0.01)).is_some());
        for raw in [1, 2, 4] {
            scan.did_not_fit();
            assert_eq!(raw_until_asked(&mut scan), Some(raw));
        }
        scan.fitted(&part(0.01), expected);
        scan.did_not_fit();
        assert_eq!(raw_until_asked(&mut scan), Some(1));
    }

    #[test]
    fn what_answers_had_corrects_what_is_expected() {
        let mut scan = FarScan::default();
        let expected = part(0.1).expected().unwrap() as u64;
        for _ in 0..20 {
            scan.fitted(&part(0.1), expected * 3);
        }
        assert_eq!(scan.ask(&part(0.1)), None, "three times as much does not pay");
        let again = (0..100).position(|_| scan.ask(&part(0.1)).is_some());
        assert!(again.is_some_and(|asks| asks > 1), "tried again after a while: {again:?}");
    }

    #[test]
    fn shares_follow_from_bounds() {
        let days = FarColumn { min: 0.0, max: 99.0, is_whole: true, nulls: 0.0 };
        let of = |tests: &[RowTest]| far_share(tests, |column| (column == 0).then_some(days), |_, value| Some(value[0].into()));
        let compare = |by, value| RowTest::Compare { column: 0, by, value: vec![value] };
        assert!((of(&[compare(Comparison::Equal, 5)]) - 0.01).abs() < 1e-9);
        assert_eq!(of(&[compare(Comparison::Equal, 200)]), 0.0);
        assert!((of(&[compare(Comparison::Less, 25)]) - 0.25).abs() < 0.02);
        let between = [compare(Comparison::AtLeast, 50), compare(Comparison::Less, 25), RowTest::Or];
        assert!(of(&between) > 0.5 && of(&between) < 0.7);
        let unknown = RowTest::Compare { column: 1, by: Comparison::Less, value: vec![1] };
        assert_eq!(of(&[unknown]), UNKNOWN_SHARE);
        assert_eq!(of(&[]), 1.0);
    }

    proptest! {
        /// However answers come out.
        #[test]
        fn a_scan_has_never_more_sent_than_it_would_read(shares in proptest::collection::vec(0.0f64..1.0, 1..300)) {
            let (mut scan, mut sent, mut instead) = (FarScan::default(), 0u64, 0u64);
            for share in &shares {
                let guess = part(0.01);
                let Some(most) = scan.ask(&guess) else { continue };
                let bytes = (share * (8 << 20) as f64) as u64;
                match bytes <= most {
                    true => {
                        scan.fitted(&guess, bytes);
                        (sent, instead) = (sent + bytes, instead + guess.raw_bytes);
                    }
                    false => scan.did_not_fit(),
                }
            }
            prop_assert!(sent <= instead);
        }

        #[test]
        fn a_share_is_one(min: f64, max: f64, value: f64, nulls in 0.0f64..1.0, is_whole: bool) {
            let known = FarColumn { min, max, is_whole, nulls };
            use Comparison::*;
            for by in [Equal, Different, Less, AtMost, Greater, AtLeast] {
                let share = known.share(by, value);
                prop_assert!((0.0..=1.0).contains(&share), "{share}");
            }
        }
    }
}
