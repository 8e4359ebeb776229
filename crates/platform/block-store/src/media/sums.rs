//! What a page's checksum is made of, and which pages of the checksum areas are in use.

use forebay_types::{PAGE_BYTES, PageRun, SegmentId};
use parking_lot::Mutex;

pub(crate) const SUMS_PER_PAGE: u64 = PAGE_BYTES / 4;

/// The checksum of a page: CRC-32C over the segment's id (16 bytes, little endian), the page's index in the segment
/// (u32, little endian) and the page's 4096 bytes. So neither another segment's page nor another page of the same
/// segment verifies in its place.
pub(crate) fn page_sum(id: SegmentId, page: u32, bytes: &[u8]) -> u32 {
    debug_assert_eq!(bytes.len() as u64, PAGE_BYTES);
    let mut seed = [0; 20];
    seed[..16].copy_from_slice(&id.0.to_le_bytes());
    seed[16..].copy_from_slice(&page.to_le_bytes());
    forebay_types::crc32c_append(forebay_types::crc32c(&seed), bytes)
}

/// Whether whole pages are those that another store gave with these checksums ([`crate::Pinned::sums`]): neither the bytes nor
/// their place have changed since they came to it.
pub fn pages_verify(id: SegmentId, run: PageRun, bytes: &[u8], sums: &[u32]) -> bool {
    let pages = bytes.chunks_exact(PAGE_BYTES as usize);
    bytes.len() as u64 == u64::from(run.len) * PAGE_BYTES
        && sums.len() == run.len as usize
        && run.pages().zip(pages).zip(sums).all(|((page, bytes), sum)| page_sum(id, page, bytes) == *sum)
}

/// Which pages of a tier's checksum area are in use. The sum of the page at address `a` is the `a`-th word of the area, so
/// one page of sums serves 1024 neighbouring pages, whatever segments they are of.
pub(crate) struct SumGroups {
    /// Data pages that are there, or being put there, for each page of sums.
    in_use: Mutex<Vec<u16>>,
}

impl SumGroups {
    /// For `addresses` pages of data. Untouched parts take no memory.
    pub fn new(addresses: u64) -> Self {
        Self { in_use: Mutex::new(vec![0; addresses.div_ceil(SUMS_PER_PAGE) as usize]) }
    }

    /// Pages of sums that `len` pages at `start` have a part in.
    pub fn pages_of(start: u64, len: u64) -> u64 {
        (start + len).div_ceil(SUMS_PER_PAGE) - start / SUMS_PER_PAGE
    }

    /// Counts pages in; returns how many pages of sums came into use by that.
    pub fn add(&self, start: u64, len: u64) -> u64 {
        let mut in_use = self.in_use.lock();
        let mut fresh = 0;
        for (group, pages) in groups(start, len) {
            let count = &mut in_use[group as usize];
            fresh += u64::from(*count == 0);
            *count += pages;
        }
        fresh
    }

    /// Counts pages out; returns how many pages of sums went out of use. `punch` is called for each, before anyone can
    /// bring it into use again.
    pub fn remove(&self, start: u64, len: u64, mut punch: impl FnMut(u64)) -> u64 {
        let mut in_use = self.in_use.lock();
        let mut gone = 0;
        for (group, pages) in groups(start, len) {
            let count = &mut in_use[group as usize];
            *count -= pages;
            if *count == 0 {
                punch(group);
                gone += 1;
            }
        }
        gone
    }
}

fn groups(start: u64, len: u64) -> impl Iterator<Item = (u64, u16)> {
    (start / SUMS_PER_PAGE..(start + len).div_ceil(SUMS_PER_PAGE)).map(move |group| {
        let first = (group * SUMS_PER_PAGE).max(start);
        let end = ((group + 1) * SUMS_PER_PAGE).min(start + len);
        (group, (end - first) as u16)
    })
}
