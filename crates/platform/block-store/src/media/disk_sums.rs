//! Checksums of pages on disk, apart from the pages, so that these stay whole and aligned.

use std::io;
use std::sync::Arc;

use forebay_types::PAGE_BYTES;

use super::disk_file::DiskFile;
use super::frames::Frames;
use super::{Arena, SUMS_PER_PAGE};

/// The disk tier's checksums: the word at `4 * a` of a sparse file of their own is the checksum of the page at address
/// `a`. Pages of it are cached in frames of the DRAM tier and written through.
pub(crate) struct DiskSums {
    file: DiskFile,
    frames: Frames,
}

impl DiskSums {
    /// With so many frames of the arena, from the first one on.
    pub fn new(file: DiskFile, arena: Arc<Arena>, (first, count): (u64, u64)) -> Self {
        Self { file, frames: Frames::new(arena, first, count) }
    }

    /// The checksums of `len` pages from `start`.
    pub fn load(&self, start: u64, len: u64) -> io::Result<Vec<u32>> {
        let mut sums = Vec::with_capacity(len as usize);
        for (group, words) in groups(start, len) {
            self.with(group, |bytes| {
                let words = &bytes[words.start as usize * 4..words.end as usize * 4];
                sums.extend(words.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))));
                Ok(())
            })?;
        }
        Ok(sums)
    }

    /// Stores the checksums of the pages from `start`.
    pub fn store(&self, start: u64, sums: &[u32]) -> io::Result<()> {
        let mut left = sums;
        for (group, words) in groups(start, sums.len() as u64) {
            let (these, rest) = left.split_at((words.end - words.start) as usize);
            left = rest;
            self.with(group, |bytes| {
                for (word, sum) in bytes[words.start as usize * 4..].chunks_exact_mut(4).zip(these) {
                    word.copy_from_slice(&sum.to_le_bytes());
                }
                self.file.write(group, bytes)
            })?;
        }
        Ok(())
    }

    /// Gives a page of checksums back.
    pub fn punch(&self, group: u64) -> io::Result<()> {
        self.frames.with(group, |holds, _| {
            if *holds == Some(group) {
                *holds = None;
            }
            self.file.punch(group, 1)
        })
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    pub fn heap_bytes(&self) -> usize {
        self.frames.heap_bytes()
    }

    /// Works on a page of checksums. After an error the frame is read anew.
    fn with(&self, group: u64, work: impl FnOnce(&mut [u8]) -> io::Result<()>) -> io::Result<()> {
        self.frames.with(group, |holds, bytes| {
            let done = || {
                if *holds != Some(group) {
                    *holds = None;
                    self.file.read(group, bytes)?;
                }
                work(bytes)
            };
            let result = done();
            *holds = result.is_ok().then_some(group);
            result
        })
    }
}

/// The pages of checksums that `len` pages from `start` have words in, and which words.
fn groups(start: u64, len: u64) -> impl Iterator<Item = (u64, std::ops::Range<u64>)> {
    debug_assert_eq!(SUMS_PER_PAGE * 4, PAGE_BYTES);
    (start / SUMS_PER_PAGE..(start + len).div_ceil(SUMS_PER_PAGE)).map(move |group| {
        let base = group * SUMS_PER_PAGE;
        (group, base.max(start) - base..(base + SUMS_PER_PAGE).min(start + len) - base)
    })
}
