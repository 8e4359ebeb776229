//! Answers compressed for a slow link: one block of LZ4, whose length both sides know.

use bytes::Bytes;
use forebay_types::{Error, Result};
use lz4_flex::block::{compress, decompress_into};

/// A table compressed.
pub fn pack(table: &[u8]) -> Bytes {
    compress(table).into()
}

/// The table that was compressed, of `len` bytes, which whoever asks has held to what an answer may have.
/// `Corrupt` for what is none of that length.
pub fn unpack(packed: &[u8], len: usize) -> Result<Bytes> {
    let mut table = vec![0; len];
    match decompress_into(packed, &mut table) {
        Ok(bytes) if bytes == len => Ok(table.into()),
        Ok(bytes) => Err(Error::corrupt(format!("a compressed answer of {len} bytes has {bytes}"))),
        Err(error) => Err(Error::corrupt(format!("a compressed answer of {len} bytes: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::ErrorKind;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_repeats_becomes_less_and_comes_back() {
        let table: Vec<u8> = (0..100_000u32).flat_map(|row| [(row % 7) as u8, 0, 3]).collect();
        let packed = pack(&table);
        assert!(packed.len() * 4 < table.len(), "{} bytes", packed.len());
        assert_eq!(unpack(&packed, table.len()).unwrap(), table);
        for wrong in [0, table.len() - 1, table.len() + 1] {
            assert_eq!(unpack(&packed, wrong).unwrap_err().kind(), ErrorKind::Corrupt, "{wrong}");
        }
        assert!(unpack(&packed[..packed.len() / 2], table.len()).is_err());
        assert!(unpack(&[], 5).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(table in proptest::collection::vec(any::<u8>(), 1..5000)) {
            prop_assert_eq!(unpack(&pack(&table), table.len()).unwrap(), table);
        }

        #[test]
        fn no_bytes_do_harm(packed in proptest::collection::vec(any::<u8>(), 0..300), len in 0usize..5000) {
            if let Ok(table) = unpack(&packed, len) {
                prop_assert_eq!(table.len(), len);
            }
        }
    }
}
