//! How a dataset comes to have more or fewer shards: which keys go where, what the new shards start with, and when they take the place of the
//! old ones.
//!
//! Nothing here is done by itself: the caller makes the new parts, reads logs, ends them and writes the manifest, and asks after each of these
//! what comes next. All that is decided by stands in shared storage, so whoever comes after a crash goes on by the same rule.

mod cut;
mod pieces;
mod switch;

pub use cut::{SHARDS_MAX, Share, hashes, recut, shards_for};
pub use pieces::{Piece, merged, pieces, split};
pub use switch::{LogState, SWITCH_LIMITS, SwitchLimits, SwitchStep, TAIL_BYTES_MAX, may_switch, switch, tails_fit};

/// A replica of a shard that keys come from, on the worker where the new one is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptAt {
    /// Its size, as a part of its input.
    pub size: f64,
    /// Bytes of the input that go into the new shard.
    pub bytes: f64,
}

/// The size that the new one starts with, as a part of its input: what is kept for its keys now is kept for them then. None where nothing is
/// kept for any of them here: it starts as its place among the holders says.
pub fn start(from: &[KeptAt]) -> Option<f64> {
    let counted =
        || from.iter().filter(|kept| kept.size > 0.0 && kept.size.is_finite() && kept.bytes > 0.0 && kept.bytes.is_finite());
    let bytes: f64 = counted().map(|kept| kept.bytes).sum();
    if bytes <= 0.0 || !bytes.is_finite() {
        return None;
    }
    let mean = counted().map(|kept| kept.size * (kept.bytes / bytes)).sum::<f64>();
    let least = counted().map(|kept| kept.size).fold(f64::INFINITY, f64::min);
    let most = counted().map(|kept| kept.size).fold(0.0, f64::max);
    // Sums are not exact.
    assert!(least <= most, "there are some");
    Some(mean.clamp(least, most))
}
