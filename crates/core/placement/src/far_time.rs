//! Which way to rows of another host's worker is the sooner one: having them selected there, or reading the file's own bytes. The reader
//! says how long a selection may take, by its link and by what both ways have taken it; the worker knows how long it would take.

use std::time::Duration;

use crate::learned::{doubt, learn};

/// Time that must be saved for each that is spent: what is not sure to win is not done.
const MARGIN: f64 = 1.2;
/// Fewer bytes say nothing of a speed.
const MEASURED_BYTES: u64 = 16 << 10;
/// Weight of what was measured last.
const LATEST: f64 = 0.3;
/// What is left of the time that the file's bytes are taken to need after an answer that came in their place: they were measured before that,
/// maybe in a bad moment, which must not decide for good.
const RAW_DOUBT: f64 = 0.998;
/// What is left of what was measured of answers after a question that was not asked because of it.
const OPENING_DOUBT: f64 = 0.98;
/// The same of selections after one that was not made because of it.
const SELECTING_DOUBT: f64 = 0.98;
/// Answers in a row of columns whose bytes in the file were never read here: then some are, so that it is known what that takes.
const UNREAD_MAX: u32 = 16;
/// Until something is measured: a core of a server of now. Of selecting the best is expected, since what is turned down is never measured.
const OPENED_BYTES_PER_SEC: f64 = 1e9;
const SELECTED_BYTES_PER_SEC: f64 = 4e9;
/// Parts of a file of which a scan asks for rows at a time: the way there takes its time.
pub const FAR_ASKED: usize = 4;

/// What both ways have taken a reader lately, for the same columns of files of one table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarReading {
    /// Seconds that the engine's own reader takes for a byte of the file; none before it has read some.
    raw: Option<f64>,
    /// Answers that came before that.
    unread: u32,
    /// Seconds that opening an answer takes for a byte of it.
    opening: f64,
}

impl Default for FarReading {
    fn default() -> Self {
        Self { raw: None, unread: 0, opening: 1.0 / OPENED_BYTES_PER_SEC }
    }
}

impl FarReading {
    /// How long a worker may take to select rows of `expected` bytes, so that they are there sooner than `raw_bytes` of the file are decoded:
    /// over a link that carries so many bytes a second. Nothing is to be asked where it is no time at all; none where the link or the engine's
    /// reader was never measured, so that bytes alone decide.
    pub fn within(&self, raw_bytes: u64, expected: u64, link_bytes_per_sec: Option<u64>) -> Option<Duration> {
        let Some(raw) = self.raw else { return (self.unread >= UNREAD_MAX).then_some(Duration::ZERO) };
        debug_assert!(raw >= 0.0 && self.opening > 0.0, "what was measured can be: {self:?}");
        let link = 1.0 / link_bytes_per_sec.filter(|link| *link > 0)? as f64;
        let left = raw_bytes as f64 * (link + raw) / MARGIN - expected as f64 * (link + self.opening);
        // Longer than any question waits is as good as for ever.
        Some(Duration::try_from_secs_f64(left.max(0.0)).unwrap_or(Duration::MAX))
    }

    /// The engine's own reader has made rows of so many bytes of the file, in so many seconds of a thread's time.
    pub fn read(&mut self, bytes: u64, secs: f64) {
        self.unread = 0;
        if let Some(took) = for_a_byte(bytes, secs) {
            learn(self.raw.get_or_insert(took), took, LATEST);
        }
    }

    /// An answer of so many bytes was opened in so many seconds, in the place of bytes of the file.
    pub fn opened(&mut self, bytes: u64, secs: f64) {
        match &mut self.raw {
            Some(raw) => *raw *= RAW_DOUBT,
            None => self.unread = self.unread.saturating_add(1),
        }
        if let Some(took) = for_a_byte(bytes, secs) {
            learn(&mut self.opening, took, LATEST);
        }
    }

    /// Nobody was asked, and the file's bytes are read. What was measured of answers counts a little less from now on; and where nothing is
    /// known of the file's bytes, as of those that nobody reads to their end, some answers more are asked for before it is tried again.
    pub fn passed(&mut self) {
        self.unread = 0;
        doubt(&mut self.opening, 1.0 / OPENED_BYTES_PER_SEC, OPENING_DOUBT);
    }
}

/// How fast a worker selects rows lately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarSelecting {
    /// Seconds that a thread takes for a byte of the decoded columns.
    secs: f64,
}

impl Default for FarSelecting {
    fn default() -> Self {
        Self { secs: 1.0 / SELECTED_BYTES_PER_SEC }
    }
}

impl FarSelecting {
    /// Whether rows of columns of so many bytes come as fast as a reader wants them, who has [`FAR_ASKED`] questions under way at a time. Of all
    /// readers there are `under_way`, with this one, and `threads` that answer them.
    pub fn keeps(&self, bytes: u64, under_way: usize, threads: usize, within: Option<Duration>) -> bool {
        debug_assert!(under_way > 0 && threads > 0, "somebody asks, and somebody selects");
        let Some(within) = within else { return true };
        // Each reader has its part of the threads, and waits for none of its own questions: it asks for the next parts meanwhile.
        let readers = (under_way as f64 / FAR_ASKED as f64).max(1.0);
        let at_once = threads.min(FAR_ASKED).min(under_way).max(1) as f64;
        bytes as f64 * self.secs * readers / at_once <= within.as_secs_f64()
    }

    /// Rows of columns of so many bytes were selected in so many seconds.
    pub fn selected(&mut self, bytes: u64, secs: f64) {
        if let Some(took) = for_a_byte(bytes, secs) {
            learn(&mut self.secs, took, LATEST);
        }
    }

    /// A question was turned down: a bad moment must not decide for good.
    pub fn turned_down(&mut self) {
        doubt(&mut self.secs, 1.0 / SELECTED_BYTES_PER_SEC, SELECTING_DOUBT);
    }
}

/// None where it says nothing: of few bytes, or over in no time.
fn for_a_byte(bytes: u64, secs: f64) -> Option<f64> {
    (bytes >= MEASURED_BYTES && secs > 0.0 && secs.is_finite()).then(|| secs / bytes as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MB: u64 = 1_000_000;
    const ONE_GBIT: Option<u64> = Some(125 * MB);
    const TEN_GBIT: Option<u64> = Some(1250 * MB);

    /// A reader that decodes so many bytes of the file a second.
    fn decoding(bytes_per_sec: f64) -> FarReading {
        let mut reading = FarReading::default();
        reading.read(100 * MB, 100.0 * MB as f64 / bytes_per_sec);
        reading
    }

    fn millis(within: Option<Duration>) -> f64 {
        within.expect("it was measured").as_secs_f64() * 1e3
    }

    #[test]
    fn a_row_group_of_four_megabytes_over_each_link() {
        // 250 MB of the file are decoded a second, and an answer of a tenth of the bytes is opened at 1 GB/s.
        let reading = decoding(250e6);
        // 32 ms of the link and 16 of the decoder, less 3.6 for the answer.
        let slow = millis(reading.within(4 * MB, 400_000, ONE_GBIT));
        assert!((slow - (48.0 / 1.2 - 3.6)).abs() < 0.1, "{slow}");
        // 3.2 ms and 16, less 0.72.
        let fast = millis(reading.within(4 * MB, 400_000, TEN_GBIT));
        assert!((fast - (19.2 / 1.2 - 0.72)).abs() < 0.1, "{fast}");
        assert_eq!(reading.within(4 * MB, 400_000, None), None, "nobody knows the link: bytes decide");
    }

    #[test]
    fn what_is_decoded_at_once_is_not_asked_for_over_a_fast_link() {
        // 4 GB a second, as of values that stand in the file as they are, and half of the bytes to be sent.
        let reading = decoding(4e9);
        assert_eq!(reading.within(4 * MB, 2 * MB, TEN_GBIT), Some(Duration::ZERO));
        assert!(millis(reading.within(4 * MB, 2 * MB, ONE_GBIT)) > 5.0, "a slow link wants fewer bytes all the same");
    }

    #[test]
    fn columns_that_were_never_read_here_are_read_once() {
        let mut reading = FarReading::default();
        for _ in 0..UNREAD_MAX {
            assert_eq!(reading.within(4 * MB, MB, TEN_GBIT), None, "nobody knows: bytes decide");
            reading.opened(MB, 0.001);
        }
        assert_eq!(reading.within(4 * MB, MB, None), Some(Duration::ZERO));
        reading.read(100, 0.001);
        assert_eq!(reading.within(4 * MB, MB, TEN_GBIT), None, "too few to know anything");
        reading.read(4 * MB, 0.016);
        assert!(millis(reading.within(4 * MB, MB, TEN_GBIT)) > 5.0);
    }

    #[test]
    fn columns_that_nobody_reads_to_their_end_are_asked_for_again() {
        let mut reading = FarReading::default();
        for _ in 0..3 {
            for _ in 0..UNREAD_MAX {
                assert_eq!(reading.within(4 * MB, MB, TEN_GBIT), None, "nobody knows: bytes decide");
                reading.opened(MB, 0.001);
            }
            assert_eq!(reading.within(4 * MB, MB, TEN_GBIT), Some(Duration::ZERO));
            // Its reader has all that it wants before the file's bytes end, and tells nothing.
            reading.passed();
        }
    }

    #[test]
    fn a_worker_that_is_asked_by_many_turns_some_down() {
        // 10 MB of columns take 10 ms of a thread.
        let selecting = FarSelecting { secs: 1e-9 };
        let keeps = |under_way, threads, ms| selecting.keeps(10 * MB, under_way, threads, Some(Duration::from_millis(ms)));
        assert!(keeps(1, 1, 11) && !keeps(1, 1, 9));
        assert!(keeps(4, 1, 11), "one reader's own questions are no queue to it");
        assert!(!keeps(8, 1, 19) && keeps(8, 1, 21), "two readers share a thread");
        assert!(keeps(8, 4, 6) && !keeps(8, 4, 4), "two readers share four");
        assert!(!keeps(1, 4, 9), "one question has one thread");
        assert!(selecting.keeps(10 * MB, 1000, 1, None), "who does not say waits");
    }

    #[test]
    fn what_was_measured_in_a_bad_moment_is_measured_again() {
        let mut selecting = FarSelecting::default();
        selecting.selected(MB, 10.0);
        let ten_ms = Some(Duration::from_millis(10));
        let tried = (0..1000).position(|_| {
            let keeps = selecting.keeps(5 * MB, 1, 1, ten_ms);
            selecting.turned_down();
            keeps
        });
        assert!(tried.is_some_and(|tried| tried > 10), "{tried:?}");

        let mut reading = decoding(1e6);
        let read = (0..10_000).position(|_| {
            reading.opened(MB, 0.002);
            reading.within(4 * MB, MB, TEN_GBIT) == Some(Duration::ZERO)
        });
        assert!(read.is_some_and(|read| read > 100), "{read:?}");
        reading.read(4 * MB, 0.016);
        assert!(millis(reading.within(4 * MB, 400_000, TEN_GBIT)) > 0.0);

        // A small answer whose thread was held up while it was opened.
        let mut reading = decoding(250e6);
        reading.opened(MEASURED_BYTES, 0.01);
        let asked = (0..1000).position(|_| {
            let is_asked = reading.within(4 * MB, 400_000, TEN_GBIT) != Some(Duration::ZERO);
            reading.passed();
            reading.read(4 * MB, 0.016);
            is_asked
        });
        assert!(asked.is_some_and(|asked| asked > 10), "{asked:?}");
    }

    #[test]
    fn what_says_nothing_changes_nothing() {
        let (mut reading, mut selecting) = (FarReading::default(), FarSelecting::default());
        for (bytes, secs) in [(100, 1.0), (MB, 0.0), (MB, f64::INFINITY), (MB, f64::NAN)] {
            reading.read(bytes, secs);
            selecting.selected(bytes, secs);
            let before = reading.opening;
            reading.opened(bytes, secs);
            assert_eq!(reading.opening, before);
        }
        assert_eq!((reading.raw, selecting), (None, FarSelecting::default()));
    }

    proptest! {
        /// By what is known, and however that came about: rows that are asked for and selected are there before the file's bytes are decoded.
        #[test]
        fn it_never_loses_by_what_is_known(
            measured in proptest::collection::vec((1u64..1 << 26, 1e-6f64..1.0), 1..30),
            raw_bytes in 1u64..1 << 26,
            share in 0.0f64..1.0,
            link in 1_000u64..10_000_000_000,
            (columns, threads) in (1u64..1 << 28, 1usize..5),
        ) {
            let (mut reading, mut selecting) = (FarReading::default(), FarSelecting::default());
            for (bytes, secs) in measured {
                reading.read(bytes, secs);
                reading.opened(bytes, secs);
                selecting.selected(bytes, secs);
            }
            let expected = (raw_bytes as f64 * share) as u64;
            let within = reading.within(raw_bytes, expected, Some(link));
            if let (Some(raw), true) = (reading.raw, selecting.keeps(columns, 1, threads, within)) {
                let link = 1.0 / link as f64;
                let by_rows = columns as f64 * selecting.secs + expected as f64 * (link + reading.opening);
                // Durations are whole nanoseconds.
                prop_assert!(within == Some(Duration::ZERO) || by_rows <= raw_bytes as f64 * (link + raw) + 1e-8);
            }
        }
    }
}
