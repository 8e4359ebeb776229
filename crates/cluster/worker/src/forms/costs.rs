use std::time::Duration;

use forebay_placement::FormCosts;
use parking_lot::Mutex;

/// Weight of what was measured last.
const LATEST: f64 = 0.2;
/// Weight of the guess where what was measured says no.
const DOUBT: f64 = 0.02;

/// What reading from the DRAM tier and decoding cost here, measured with each column that is decoded.
pub(crate) struct Costs(Mutex<FormCosts>);

/// Until something is measured: a core of a server of now.
const GUESS: FormCosts = FormCosts { tier_bytes_per_sec: 4e9, decode_bytes_per_sec: 1e9 };

impl Default for Costs {
    fn default() -> Self {
        Self(Mutex::new(GUESS))
    }
}

impl Costs {
    pub(super) fn now(&self) -> FormCosts {
        *self.0.lock()
    }

    /// Nothing was decoded because of what was measured: it counts a little less from now on, or a bad moment would decide
    /// for good.
    pub(super) fn doubt(&self) {
        let mut costs = self.0.lock();
        costs.tier_bytes_per_sec += (GUESS.tier_bytes_per_sec - costs.tier_bytes_per_sec) * DOUBT;
        costs.decode_bytes_per_sec += (GUESS.decode_bytes_per_sec - costs.decode_bytes_per_sec) * DOUBT;
    }

    /// Bytes that were read from the tier, and bytes that were made of them, with the time that each took.
    pub(super) fn measured(&self, read: (usize, Duration), made: (usize, Duration)) {
        let mut costs = self.0.lock();
        let blend = |known: &mut f64, (bytes, took): (usize, Duration)| {
            // What is over in no time says nothing.
            if bytes >= 64 << 10 && !took.is_zero() {
                *known += (bytes as f64 / took.as_secs_f64() - *known) * LATEST;
            }
        };
        blend(&mut costs.tier_bytes_per_sec, read);
        blend(&mut costs.decode_bytes_per_sec, made);
    }
}
