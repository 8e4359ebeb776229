//! When a certificate holds: read from its bytes (RFC 5280, 4.1) as far as that stands, and no further.

use std::fmt;
use std::path::Path;

use forebay_types::date_of;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The version of a certificate, which the first one has not.
const VERSION: u8 = 0xa0;

/// A second of UTC, in the order of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Moment {
    /// So many seconds after the beginning of 1970.
    pub(super) fn of_unix(seconds: u64) -> Self {
        let (year, month, day) = date_of((seconds / 86_400) as i64);
        let within = seconds % 86_400;
        Self {
            year: year as u64,
            month: month.into(),
            day: day.into(),
            hour: within / 3_600,
            minute: within / 60 % 60,
            second: within % 60,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

/// When a certificate holds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    from: Moment,
    to: Moment,
}

impl Validity {
    /// That of a certificate in DER; none where it can't be read.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let (certificate, _) = tagged(SEQUENCE, certificate)?;
        let (signed, _) = tagged(SEQUENCE, certificate)?;
        let rest = tagged(VERSION, signed).map_or(signed, |(_, rest)| rest);
        let (_number, rest) = tagged(INTEGER, rest)?;
        let (_algorithm, rest) = tagged(SEQUENCE, rest)?;
        let (_issuer, rest) = tagged(SEQUENCE, rest)?;
        let (times, _) = tagged(SEQUENCE, rest)?;
        let (from, rest) = moment(times)?;
        let (to, _) = moment(rest)?;
        Some(Self { from, to })
    }

    pub(super) fn holds(&self, now: Moment) -> bool {
        self.from <= now && now <= self.to
    }

    /// What is wrong with the certificate of a file, with the remedy; none while it holds.
    pub(super) fn fault(&self, path: &Path, now: Moment) -> Option<String> {
        let how = match self.holds(now) {
            true => return None,
            false if now < self.from => "is not valid yet",
            false => "has expired",
        };
        let path = path.display();
        Some(format!("TLS certificate {path} {how}: it holds from {self}, and here it is {now}; renew it, or set the clock"))
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.from, self.to)
    }
}

/// The first element of DER: its tag, what is in it, and what comes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // No certificate is so long that this takes more than three bytes.
        0x81..=0x83 => {
            let (len, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (len.iter().fold(0usize, |len, byte| (len << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (inside, rest) = rest.split_at_checked(len)?;
    Some((tag, inside, rest))
}

/// What is in the first element, if it has this tag, and what comes after it.
fn tagged(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(found, ..)| *found == tag).map(|(_, inside, rest)| (inside, rest))
}

fn moment(bytes: &[u8]) -> Option<(Moment, &[u8])> {
    let (tag, text, rest) = element(bytes)?;
    let digits = text.strip_suffix(b"Z").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number = |digits: &[u8]| digits.iter().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    let (year, digits) = match (tag, digits.len()) {
        // Two digits are a year from 1950 on.
        (UTC_TIME, 12) => (1950 + (number(&digits[..2]) + 50) % 100, &digits[2..]),
        (GENERALIZED_TIME, 14) => (number(&digits[..4]), &digits[4..]),
        _ => return None,
    };
    let pair = |at: usize| number(&digits[2 * at..2 * at + 2]);
    Some((Moment { year, month: pair(0), day: pair(1), hour: pair(2), minute: pair(3), second: pair(4) }, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn a_second_has_its_date() {
        let dates = [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_824_000 + 3_661, "2026-11-28 01:01:01 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ];
        for (seconds, date) in dates {
            assert_eq!(Moment::of_unix(seconds).to_string(), date);
        }
        assert!(Moment::of_unix(u64::MAX) > Moment::of_unix(1 << 40));
    }

    #[test]
    fn a_certificate_says_when_it_holds() {
        // By the short way to write a year, and by the long one.
        for (from, to) in [(1950, 2049), (1999, 2050), (2026, 4096)] {
            let mut params = CertificateParams::new(vec!["localhost".to_string()]).unwrap();
            (params.not_before, params.not_after) = (date_time_ymd(from, 2, 28), date_time_ymd(to, 12, 31));
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let validity = Validity::of(certificate.der()).unwrap();
            assert_eq!(validity.to_string(), format!("{from}-02-28 00:00:00 UTC to {to}-12-31 00:00:00 UTC"));
            for len in 0..certificate.der().len() {
                assert_eq!(Validity::of(&certificate.der()[..len]), None, "{len} of its bytes");
            }
        }
    }

    #[test]
    fn what_does_not_hold_is_named_with_both_dates() {
        let of = |year| Moment { year, month: 1, day: 2, hour: 3, minute: 4, second: 5 };
        let validity = Validity { from: of(2020), to: of(2026) };
        let fault = |now| validity.fault(Path::new("/etc/tls.crt"), now);
        assert_eq!((fault(of(2020)), fault(of(2026))), (None, None), "both ends are in it");
        let early = fault(of(2019)).unwrap();
        assert!(early.starts_with("TLS certificate /etc/tls.crt is not valid yet: it holds from 2020-01-02 03:04:05 UTC to "));
        assert!(early.contains(" to 2026-01-02 03:04:05 UTC, and here it is 2019-01-02 03:04:05 UTC; renew it"), "{early}");
        let late = Moment { second: 6, ..of(2026) };
        assert!(fault(late).unwrap().contains("tls.crt has expired"));
    }
}
