//! The numbers of a client's calls.

use serde::{Deserialize, Serialize};

/// The number of a call that is to take effect once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallNumber {
    /// Who asks: a random number.
    pub client: u64,
    /// Which of its slots: it has one call at a time in each.
    pub slot: u32,
    /// Which call of the slot; later ones have higher numbers.
    pub turn: u64,
}

impl CallNumber {
    /// Bytes of a number in a message.
    pub const BYTES: usize = 20;

    /// The number of the next call of the slot.
    #[must_use]
    pub fn renewed(self) -> Self {
        Self { turn: self.turn + 1, ..self }
    }

    /// Its bytes: client, slot and turn, little endian.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.client.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.slot.to_le_bytes());
        bytes[12..].copy_from_slice(&self.turn.to_le_bytes());
        bytes
    }

    /// The number of these bytes.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let slot = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        Self { client: u64_at(0), slot, turn: u64_at(12) }
    }
}

/// The slots of a client: as many as it had calls under way at a time.
#[derive(Debug)]
pub struct Slots {
    client: u64,
    /// Those that have no call, each with the turn of its next one.
    free: Vec<(u32, u64)>,
    next: u32,
}

impl Slots {
    /// Those of a client, which is called by a number that no other one has.
    pub fn new(client: u64) -> Self {
        Self { client, free: Vec::new(), next: 0 }
    }

    /// The number of a new call.
    pub fn draw(&mut self) -> CallNumber {
        let (slot, turn) = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            (self.next - 1, 0)
        });
        CallNumber { client: self.client, slot, turn }
    }

    /// A call is over, or given up: it may still take effect as long as its slot has no other one.
    pub fn give_back(&mut self, number: CallNumber) {
        assert!(number.client == self.client && number.slot < self.next, "{number:?} was drawn here");
        debug_assert!(self.free.iter().all(|(slot, _)| *slot != number.slot), "{number:?} is given back once");
        self.free.push((number.slot, number.turn + 1));
    }
}
