//! CRC-32C, the checksum of frames, pages, tables and shards.

use crc_fast::CrcAlgorithm::Crc32Iscsi;

/// The checksum of `bytes`.
#[inline]
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The checksum of what has the checksum `before`, followed by `bytes`.
#[inline]
#[must_use]
pub fn crc32c_append(before: u32, bytes: &[u8]) -> u32 {
    if before == 0 {
        // The state at the start; most appends are to nothing.
        return crc32c(bytes);
    }
    // The state is the checksum before its bits are turned over at the end.
    let mut digest = crc_fast::Digest::new_with_init_state(Crc32Iscsi, u64::from(!before));
    digest.update(bytes);
    digest.finalize() as u32
}
