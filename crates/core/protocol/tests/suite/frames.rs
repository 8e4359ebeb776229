//! Headers of frames, right and wrong.

use forebay_protocol::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, LEFT_SINCE, META_BYTES_MAX, PAYLOAD_BYTES_MAX, PROTOCOL_VERSION,
    PROTOCOL_VERSION_OLDEST,
};
use forebay_types::{ErrorKind, Result};
use proptest::prelude::*;

const KINDS: [FrameKind; 5] = [FrameKind::Request, FrameKind::Reply, FrameKind::Cancel, FrameKind::Notice, FrameKind::Hello];

fn header() -> FrameHeader {
    let (kind, version) = (FrameKind::Request, PROTOCOL_VERSION);
    FrameHeader { meta_len: 1, payload_len: 2, tag: 3, kind, descriptors: 0, version, payload_crc: 5, crc: 4 }
}

fn read_changed(change: impl FnOnce(&mut [u8; FRAME_HEADER_BYTES])) -> Result<FrameHeader> {
    let mut bytes = header().to_bytes();
    change(&mut bytes);
    FrameHeader::from_bytes(&bytes)
}

#[test]
fn the_largest_frame_is_read_and_larger_ones_are_not() {
    let largest = FrameHeader { meta_len: META_BYTES_MAX, payload_len: PAYLOAD_BYTES_MAX, descriptors: 1, ..header() };
    assert_eq!(FrameHeader::from_bytes(&largest.to_bytes()).unwrap(), largest);
    for over in [
        FrameHeader { meta_len: META_BYTES_MAX + 1, ..largest },
        FrameHeader { payload_len: PAYLOAD_BYTES_MAX + 1, ..largest },
        FrameHeader { descriptors: 2, ..largest },
    ] {
        let error = FrameHeader::from_bytes(&over.to_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("limits"), "{error}");
    }
}

#[test]
fn another_version_is_named() {
    for version in [PROTOCOL_VERSION_OLDEST, PROTOCOL_VERSION] {
        assert_eq!(read_changed(|bytes| bytes[18] = version as u8).unwrap().version, version);
    }
    for (version, which) in [(PROTOCOL_VERSION_OLDEST - 1, "upgrade the peer"), (PROTOCOL_VERSION + 1, "upgrade this process")] {
        let error = read_changed(|bytes| bytes[18] = version as u8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let both = format!("peer speaks protocol {version}, this is {PROTOCOL_VERSION_OLDEST} to {PROTOCOL_VERSION}: {which}");
        assert!(error.message().contains(&both), "{error}");
    }
}

#[test]
fn unknown_kinds_are_refused() {
    assert!((0..6).all(|kind| read_changed(|bytes| bytes[16] = kind).is_ok()));
    assert!((6..=255).all(|kind| read_changed(|bytes| bytes[16] = kind).is_err()));
}

#[test]
fn a_request_that_says_how_long_it_is_waited_for_is_new_in_version_9() {
    let timed = FrameHeader { kind: FrameKind::Timed, ..header() };
    assert_eq!(timed.to_bytes()[16], 5);
    for version in PROTOCOL_VERSION_OLDEST..=PROTOCOL_VERSION {
        let header = FrameHeader { version, ..timed };
        match version >= LEFT_SINCE {
            true => assert_eq!(FrameHeader::from_bytes(&header.to_bytes()).unwrap(), header),
            false => assert_eq!(FrameHeader::from_bytes(&header.to_bytes()).unwrap_err().kind(), ErrorKind::Invalid),
        }
    }
}

proptest! {
    #[test]
    fn headers_are_read_back_as_written(
        meta_len in 0..=META_BYTES_MAX, payload_len in 0..=PAYLOAD_BYTES_MAX, tag: u64,
        kind in prop::sample::select(&KINDS[..]), descriptors in 0u8..=1, payload_crc: u32, crc: u32,
        version in PROTOCOL_VERSION_OLDEST..=PROTOCOL_VERSION,
    ) {
        let header = FrameHeader { meta_len, payload_len, tag, kind, descriptors, version, payload_crc, crc };
        prop_assert_eq!(header.to_bytes()[..24].to_vec(), header.covered().to_vec());
        prop_assert_eq!(FrameHeader::from_bytes(&header.to_bytes()).unwrap(), header);
    }

    #[test]
    fn any_bytes_are_a_header_or_an_error(bytes: [u8; FRAME_HEADER_BYTES]) {
        if let Ok(header) = FrameHeader::from_bytes(&bytes) {
            prop_assert_eq!(header.to_bytes(), bytes);
        }
    }
}
