//! Who writes a log alone for a while.

use forebay_types::WorkerId;

/// Bytes of a claim.
const BYTES: usize = 40;

/// A worker writes what follows in a log, and a second one has the same on its disk: what both have is acknowledged before shared storage has
/// it, and goes there under the numbers that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogClaim {
    /// Drawn by its writer.
    pub id: u128,
    /// Who writes.
    pub writer: WorkerId,
    /// Who has the same.
    pub second: WorkerId,
    /// The number of the object that makes the claim: what is written under it comes behind.
    pub number: u64,
}

impl LogClaim {
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.writer.0.to_le_bytes());
        bytes.extend_from_slice(&self.second.0.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
    }

    /// The claim that `bytes` begin with; none where they are too few.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (own, rest) = bytes.split_first_chunk::<BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(own[at..at + 8].try_into().expect("eight bytes"));
        let id = u128::from_le_bytes(own[..16].try_into().expect("sixteen bytes"));
        *bytes = rest;
        Some(Self { id, writer: WorkerId(word(16)), second: WorkerId(word(24)), number: word(32) })
    }
}
