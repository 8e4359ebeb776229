//! What is on its way from each storage, and how much may be: a slow one keeps no other waiting.

use forebay_types::MountId;

use super::books::Schedule;
use super::entries::InFlight;

/// In flight are that many bytes also where the bandwidth is small: a few requests to shared storage.
const IN_FLIGHT_BYTES_MIN: u64 = 16 << 20;

impl Schedule {
    /// A storage gives so many bytes a second, as far as is known. No more of it is in flight then than it gives in half a second:
    /// a job that comes has its turn, or its share, from then on.
    pub fn set_bandwidth(&mut self, storage: MountId, bytes_per_sec: Option<u64>) {
        let half = bytes_per_sec.map_or(u64::MAX, |bytes| (bytes / 2).max(IN_FLIGHT_BYTES_MIN));
        self.in_flight(storage).half_second_bytes = half;
    }

    /// Bytes on their way from shared storage.
    pub fn arriving_bytes(&self) -> u64 {
        self.storages.values().map(|storage| storage.bytes).sum()
    }

    /// Whether more may be on its way from a storage.
    pub(super) fn has_room(&self, storage: MountId, urgent: bool) -> bool {
        let in_flight = self.storages.get(&storage).copied().unwrap_or_default();
        let bytes = if urgent { in_flight.urgent_bytes } else { in_flight.bytes };
        bytes < in_flight.half_second_bytes.min(self.settings.in_flight_bytes)
    }

    pub(super) fn in_flight(&mut self, storage: MountId) -> &mut InFlight {
        self.storages.entry(storage).or_default()
    }
}
