//! How many bytes what is compressed becomes, found without memory for them: the library's decoders of gzip, brotli and LZ4 in frames take
//! as much as comes out before they compare it with what a page says.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use forebay_table::PageFault;
use lz4_flex::frame::FrameDecoder;
use parquet::basic::Compression;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 16 << 10;
/// How frames of LZ4 begin, today's and those before them.
const FRAMES: [[u8; 4]; 2] = [[0x04, 0x22, 0x4d, 0x18], [0x02, 0x21, 0x4c, 0x18]];
/// How brotli begins whose window takes up to 1 GiB, in seven bits: it stands in no specification of brotli, but decoders take it.
const LARGE_WINDOW: u8 = 0x11;

/// Whether a page of a codec is looked at. The others decode into as much room as a page says and tell where that is wrong.
pub(crate) fn is_looked_at(codec: Compression) -> bool {
    matches!(codec, Compression::SNAPPY | Compression::GZIP(_) | Compression::BROTLI(_) | Compression::LZ4)
}

/// Checks that bytes become as many as a page says.
///
/// # Errors
/// They become fewer or more, or can't be decompressed.
pub(crate) fn check(codec: Compression, bytes: &[u8], says: u64) -> Result<(), PageFault> {
    let found = match codec {
        Compression::SNAPPY => snap::raw::decompress_len(bytes).map_err(unreadable)? as u64,
        Compression::GZIP(_) => count(MultiGzDecoder::new(bytes), says)?,
        Compression::BROTLI(_) if bytes.first().is_some_and(|first| first & 0x7f == LARGE_WINDOW) => {
            return Err(PageFault::Damage("a page is compressed with a larger window than brotli has".to_string()));
        }
        Compression::BROTLI(_) => count(brotli::Decompressor::new(bytes, BUFFER_BYTES), says)?,
        // What is not a frame is decoded into as much room as a page says.
        Compression::LZ4 if FRAMES.iter().any(|frame| bytes.starts_with(frame)) => count(FrameDecoder::new(bytes), says)?,
        _ => return Ok(()),
    };
    if found == says {
        return Ok(());
    }
    let found = if found > says { "more".to_string() } else { found.to_string() };
    Err(PageFault::Damage(format!("a page says that what is compressed of it becomes {says} bytes, and it becomes {found}")))
}

/// Bytes that come out, at most one more than there should be.
fn count(reader: impl Read, says: u64) -> Result<u64, PageFault> {
    io::copy(&mut reader.take(says.saturating_add(1)), &mut io::sink()).map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> PageFault {
    PageFault::Damage(format!("a page can't be decompressed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn brotli(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = brotli::CompressorWriter::new(&mut out, 4096, 1, 22);
        writer.write_all(bytes).unwrap();
        drop(writer);
        out
    }

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut writer = lz4_flex::frame::FrameEncoder::new(Vec::new());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn snappy(bytes: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(bytes).unwrap()
    }

    type Compress = fn(&[u8]) -> Vec<u8>;

    fn codecs() -> [(Compression, Compress); 4] {
        [
            (Compression::GZIP(Default::default()), gzip),
            (Compression::BROTLI(Default::default()), brotli),
            (Compression::LZ4, frame),
            (Compression::SNAPPY, snappy),
        ]
    }

    fn told(codec: Compression, bytes: &[u8], says: u64) -> Option<String> {
        match check(codec, bytes, says) {
            Ok(()) => None,
            Err(PageFault::Damage(why)) => Some(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_becomes_more_or_less_than_a_page_says_is_found_in_each_codec() {
        for (codec, compress) in codecs() {
            for length in [1, 1_000, 300_000] {
                let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
                let compressed = compress(&bytes);
                let length = length as u64;
                assert_eq!(told(codec, &compressed, length), None, "{codec:?}");
                for (says, found) in [(length - 1, "more"), (length + 1, &*length.to_string()), (1 << 30, &*length.to_string())] {
                    let why = told(codec, &compressed, says).unwrap_or_else(|| panic!("{codec:?} {says}"));
                    assert!(why.ends_with(&format!("becomes {says} bytes, and it becomes {found}")), "{why}");
                }
            }
        }
    }

    #[test]
    fn what_is_cut_or_damaged_is_told() {
        let bytes = vec![7; 100_000];
        for (codec, compress) in codecs() {
            let compressed = compress(&bytes);
            if codec != Compression::SNAPPY {
                let cut = told(codec, &compressed[..compressed.len() / 2], 100_000);
                assert!(cut.is_some(), "{codec:?}");
            }
        }
        for (codec, _) in codecs() {
            let is_told = told(codec, &[0xff; 40], 100).is_some();
            assert_eq!(is_told, codec != Compression::LZ4, "{codec:?}: it is no frame");
        }
    }

    #[test]
    fn a_member_behind_another_counts() {
        let twice = [gzip(&[1; 500]), gzip(&[2; 500])].concat();
        assert_eq!(told(Compression::GZIP(Default::default()), &twice, 1_000), None);
        let why = told(Compression::GZIP(Default::default()), &twice, 500).unwrap();
        assert!(why.ends_with("becomes 500 bytes, and it becomes more"), "{why}");
    }

    #[test]
    fn brotli_of_a_window_that_takes_a_gibibyte_is_refused() {
        for first in [0x11, 0x91] {
            let why = told(Compression::BROTLI(Default::default()), &[first, 0x1e, 0, 0], 1).unwrap();
            assert!(why.contains("larger window"), "{why}");
        }
    }

    #[test]
    fn codecs_whose_decoders_are_bounded_are_not_looked_at() {
        for codec in [Compression::UNCOMPRESSED, Compression::ZSTD(Default::default()), Compression::LZ4_RAW, Compression::LZO] {
            assert!(!is_looked_at(codec) && check(codec, &[9; 90], 1) == Ok(()), "{codec:?}");
        }
        for (codec, _) in codecs() {
            assert!(is_looked_at(codec), "{codec:?}");
        }
    }
}
