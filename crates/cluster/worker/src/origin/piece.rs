//! Pages that are held against eviction.

use std::ops::Range;

use bytes::Bytes;
use forebay_block_store::Pinned;
use forebay_types::PageRun;

use crate::signals::ServedFrom;

/// Some pages of a run, held against eviction.
#[derive(Clone)]
pub(crate) struct Piece {
    run: PageRun,
    data: Data,
}

#[derive(Clone)]
enum Data {
    Pinned(Pinned),
    Bytes(Bytes),
}

impl Piece {
    /// Pages in the DRAM tier.
    pub(crate) fn pinned(run: PageRun, pinned: Pinned) -> Self {
        Self { run, data: Data::Pinned(pinned) }
    }

    /// Bytes of pages that are in no tier; the last page may be short.
    pub(crate) fn bytes(run: PageRun, bytes: Bytes) -> Self {
        Self { run, data: Data::Bytes(bytes) }
    }
}

/// The pages of a run, held against eviction.
pub(crate) enum Obtained {
    /// In one piece in the DRAM tier.
    Whole(Pinned),
    /// Here and there, covering the run.
    Pieces(Vec<Piece>),
}

impl Obtained {
    /// The bytes `range` of the segment, in order; nothing is copied. `run` is what was obtained.
    pub(crate) fn slices(self, run: PageRun, range: Range<u64>) -> Vec<Bytes> {
        let pieces = match self {
            Self::Whole(pinned) => vec![Piece::pinned(run, pinned)],
            Self::Pieces(mut pieces) => {
                pieces.sort_by_key(|piece| piece.run.start);
                pieces
            }
        };
        let mut slices = Vec::with_capacity(pieces.len());
        let mut at = range.start;
        for piece in pieces {
            let bytes = piece.run.bytes();
            let end = bytes.end.min(range.end);
            if at < end {
                let all = match piece.data {
                    Data::Pinned(pinned) => pinned.into_bytes(),
                    Data::Bytes(bytes) => bytes,
                };
                slices.push(all.slice((at - bytes.start) as usize..(end - bytes.start) as usize));
                at = end;
            }
        }
        assert!(at == range.end, "pieces cover their run");
        slices
    }
}

/// Which of the pages asked for were not in the DRAM tier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    /// Pages that had to be fetched.
    pub(crate) fetched: Vec<PageRun>,
    /// Some came from the disk tier.
    pub(crate) from_disk: bool,
}

impl Missed {
    /// Bytes of `range` of the segment that were in no tier.
    pub(crate) fn bytes_of(&self, range: &Range<u64>) -> u64 {
        let overlap = |run: &PageRun| run.bytes().end.min(range.end).saturating_sub(run.bytes().start.max(range.start));
        self.fetched.iter().map(overlap).sum()
    }

    /// The slowest place that pages came from.
    pub(crate) fn served_from(&self) -> ServedFrom {
        match (self.fetched.is_empty(), self.from_disk) {
            (false, _) => ServedFrom::Storage,
            (true, true) => ServedFrom::Disk,
            (true, false) => ServedFrom::Dram,
        }
    }

    /// What was missed here and there.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.fetched.extend(other.fetched);
        self.from_disk |= other.from_disk;
        self
    }
}
