//! How much a segment weighs in a plan: what was read of it, as one number.

use forebay_types::Error;

use super::Usage;

/// What a plan weighs of what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weigh {
    /// What workers have to do: bytes that they give, and a step for each read, however small. The default: a footer is not
    /// as much as a scan of 64 MiB.
    #[default]
    Work,
    /// Operations, each as much as any other (Getafix, section 3).
    Accesses,
}

impl Weigh {
    /// What a read costs beside its bytes, in bytes that could be sent instead: a question, an answer and two looks at tables take
    /// a worker as long as 64 KiB do.
    pub const STEP_BYTES: f64 = 65_536.0;
    /// Work is planned in pages, so that what was read once still weighs something when it has aged by four windows.
    const UNIT_BYTES: f64 = 4096.0;
    /// Accesses are planned in so many parts each, for the same reason.
    const PARTS: f64 = 16.0;
    /// No segment weighs more, whatever was reported: sums over all segments stay in range.
    pub const MOST: u64 = 1 << 38;

    /// What a segment weighs of which this was read: 0 for nothing.
    ///
    /// ```
    /// use forebay_placement::{Usage, Weigh};
    ///
    /// let footer = Usage { accesses: 1.0, reads: 1.0, bytes: 8192.0, ..Usage::default() };
    /// let scan = Usage { accesses: 1.0, reads: 16.0, bytes: 67_108_864.0, ..Usage::default() };
    /// assert_eq!(Weigh::Accesses.of(footer), Weigh::Accesses.of(scan));
    /// assert!(Weigh::Work.of(scan) > 900 * Weigh::Work.of(footer));
    /// ```
    pub fn of(self, usage: Usage) -> u64 {
        let weight = match self {
            Self::Work => usage.work_bytes() / Self::UNIT_BYTES,
            Self::Accesses => usage.accesses * Self::PARTS,
        };
        // What is no number is nothing.
        (weight.round() as u64).min(Self::MOST)
    }
}

impl Usage {
    /// What workers had to do for it, in bytes: those that they gave, and [`Weigh::STEP_BYTES`] for each read.
    pub fn work_bytes(self) -> f64 {
        self.bytes + self.reads * Weigh::STEP_BYTES
    }
}

forebay_types::named! {
    Weigh, Error: Work = "work", Accesses = "accesses";
    |text| Error::invalid(format!("{text:?} is nothing that plans weigh: use work or accesses"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reported_never_overflows_a_sum_over_all_segments() {
        let most = Usage { accesses: f64::MAX, reads: f64::MAX, bytes: f64::INFINITY, service_us: 0.0 };
        for weigh in [Weigh::Work, Weigh::Accesses] {
            assert_eq!(weigh.of(most), Weigh::MOST);
            assert_eq!(weigh.of(Usage { accesses: f64::NAN, bytes: f64::NAN, ..Usage::default() }), 0);
            assert_eq!(weigh.of(Usage::default()), 0);
            assert_eq!(weigh.to_string().parse::<Weigh>().unwrap(), weigh);
        }
        assert!(Weigh::MOST.checked_mul(16 << 20).is_some());
        assert!("bytes".parse::<Weigh>().is_err());
    }

    #[test]
    fn what_was_read_once_weighs_something_four_windows_later() {
        let once = Usage { accesses: 1.0, reads: 1.0, bytes: 1.0, service_us: 1.0 };
        for weigh in [Weigh::Work, Weigh::Accesses] {
            assert!(weigh.of(once.scaled(1.0 / 16.0)) >= 1, "{weigh}");
        }
    }
}
