//! What people may write for a size, a rate or a time, and that it is read back.

use std::time::Duration;

use forebay_types::{BitRate, ByteSize, ErrorKind, format_bytes, format_duration, parse_duration};
use proptest::prelude::*;

#[test]
fn sizes_are_read_in_binary_and_decimal_units() {
    let bytes = |text: &str| text.parse::<ByteSize>().unwrap().0;
    assert_eq!(bytes("512"), 512);
    assert_eq!(bytes("0"), 0);
    assert_eq!(bytes("64MiB"), 64 << 20);
    assert_eq!(bytes("4 GiB"), 4 << 30);
    assert_eq!(bytes("10GB"), 10_000_000_000);
    assert_eq!(bytes("1.5KiB"), 1536);
    assert_eq!(bytes(" 2TiB "), 2 << 40);
    assert_eq!(bytes("9007199254740993"), 9_007_199_254_740_993);
}

#[test]
fn sizes_that_are_none_are_refused() {
    for text in ["", "MiB", "-1", "1e3", "10XB", "1..5MB", "∞", "nan", "inf", "100000000TiB", "1 2MB", "10Mbit"] {
        assert_eq!(text.parse::<ByteSize>().unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
}

#[test]
fn rates_are_read_in_bits_and_bytes() {
    let rate = |text: &str| text.parse::<BitRate>().unwrap().bytes_per_sec();
    assert_eq!(rate("400Mbit"), 50_000_000);
    assert_eq!(rate("1Gbit"), 125_000_000);
    assert_eq!(rate("1Gbit/s"), 125_000_000);
    assert_eq!(rate("50MB"), 50_000_000);
    assert_eq!(rate("50MiB/s"), 50 << 20);
    for text in ["", "100", "0Mbit", "-1Gbit", "1bit", "fast", "1Gb"] {
        assert_eq!(text.parse::<BitRate>().unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
}

#[test]
fn durations_need_a_unit() {
    assert_eq!(parse_duration("250ms").unwrap(), Duration::from_millis(250));
    assert_eq!(parse_duration("60s").unwrap(), Duration::from_secs(60));
    assert_eq!(parse_duration("1.5m").unwrap(), Duration::from_secs(90));
    assert_eq!(parse_duration("2h").unwrap(), Duration::from_secs(7200));
    assert_eq!(parse_duration("1d").unwrap(), Duration::from_secs(86_400));
    for text in ["", "60", "s", "-1s", "1w", "99999999999999999999d"] {
        assert_eq!(parse_duration(text).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
}

#[test]
fn bytes_are_shown_to_three_digits() {
    assert_eq!(format_bytes(0), "0 B");
    assert_eq!(format_bytes(1023), "1023 B");
    assert_eq!(format_bytes(1 << 10), "1.00 KiB");
    assert_eq!(format_bytes(1_300_000_000), "1.21 GiB");
    assert_eq!(format_bytes(50 << 20), "50.0 MiB");
    assert_eq!(format_bytes(500 << 30), "500 GiB");
    assert_eq!(format_bytes(u64::MAX), "16384 PiB");
}

proptest! {
    #[test]
    fn sizes_are_read_back_as_written(bytes in any::<u64>(), shift in 0u32..64) {
        let size = ByteSize(bytes >> shift << (shift / 2));
        prop_assert_eq!(size.to_string().parse::<ByteSize>().unwrap(), size);
    }

    #[test]
    fn rates_are_read_back_as_written(bytes in 1u64..1 << 50) {
        let rate = BitRate::from_bytes_per_sec(bytes);
        prop_assert_eq!(rate.to_string().parse::<BitRate>().unwrap(), rate);
    }

    #[test]
    fn durations_are_read_back_as_written(ms in 0u64..1 << 40, unit in prop::sample::select(vec![1u64, 1000, 60_000, 3_600_000])) {
        let duration = Duration::from_millis(ms / unit * unit);
        let read = parse_duration(&format_duration(duration)).unwrap();
        // Hundreds of years in milliseconds are more digits than floating point holds.
        prop_assert!(read.abs_diff(duration) < Duration::from_micros(1), "{read:?} for {duration:?}");
    }
}
