//! What reading and making a column has cost.

use std::time::Duration;

use forebay_placement::FormCosts;
use parking_lot::Mutex;
use parquet::basic::Type;

/// Weight of what was measured last.
const LATEST: f64 = 0.2;
/// Weight of the guess where what was measured says no.
const DOUBT: f64 = 0.02;

/// Until something is measured: a core of a server of now.
const TIER_BYTES_PER_SEC: f64 = 4e9;
/// Physical types of Parquet.
const TYPES: usize = 8;

/// What is decoded: what it costs differs by that.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Numbers are made several times as fast as strings.
    Parquet(Type),
    Csv,
    Json,
}

impl Kind {
    fn index(self) -> usize {
        match self {
            Self::Parquet(of) => of as usize % TYPES,
            Self::Csv => TYPES,
            Self::Json => TYPES + 1,
        }
    }
}

/// Bytes that are made a second by a guess, by [`Kind::index`].
fn guess(index: usize) -> f64 {
    if index < TYPES { 1e9 } else { 0.2e9 }
}

/// What reading from the DRAM tier and decoding cost here, measured with all that is decoded.
pub(crate) struct Costs(Mutex<Known>);

struct Known {
    tier_bytes_per_sec: f64,
    decode_bytes_per_sec: [f64; TYPES + 2],
}

impl Default for Costs {
    fn default() -> Self {
        let known = Known { tier_bytes_per_sec: TIER_BYTES_PER_SEC, decode_bytes_per_sec: std::array::from_fn(guess) };
        Self(Mutex::new(known))
    }
}

impl Costs {
    /// For columns of a kind.
    pub(super) fn now(&self, of: Kind) -> FormCosts {
        let known = self.0.lock();
        FormCosts { tier_bytes_per_sec: known.tier_bytes_per_sec, decode_bytes_per_sec: known.decode_bytes_per_sec[of.index()] }
    }

    /// Nothing was decoded because of what was measured: it counts a little less from now on, or a bad moment would decide
    /// for good.
    pub(super) fn doubt(&self, of: Kind) {
        let mut known = self.0.lock();
        known.tier_bytes_per_sec += (TIER_BYTES_PER_SEC - known.tier_bytes_per_sec) * DOUBT;
        let decode = &mut known.decode_bytes_per_sec[of.index()];
        *decode += (guess(of.index()) - *decode) * DOUBT;
        assert!(decode.is_finite() && *decode > 0.0, "decoding {of:?} is taken to go at {decode} bytes a second");
    }

    /// Bytes that were read from the tier, and bytes that were made of them, with the time that each took. Gives what the
    /// making of these cost.
    pub(super) fn measured(&self, of: Kind, read: (usize, Duration), made: (usize, Duration)) -> FormCosts {
        let mut known = self.0.lock();
        blend(&mut known.tier_bytes_per_sec, read);
        blend(&mut known.decode_bytes_per_sec[of.index()], made);
        let own = rate(made).unwrap_or(known.decode_bytes_per_sec[of.index()]);
        FormCosts { tier_bytes_per_sec: known.tier_bytes_per_sec, decode_bytes_per_sec: own }
    }
}

fn blend(known: &mut f64, measured: (usize, Duration)) {
    if let Some(rate) = rate(measured) {
        *known += (rate - *known) * LATEST;
        assert!(known.is_finite() && *known > 0.0, "{known} bytes a second after one at {rate}");
    }
}

/// None where it was over in no time, which says nothing.
fn rate((bytes, took): (usize, Duration)) -> Option<f64> {
    (bytes >= 64 << 10 && !took.is_zero()).then(|| bytes as f64 / took.as_secs_f64())
}
