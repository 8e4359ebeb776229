//! How a dataset comes to have more or fewer shards: which keys go where, what the new shards start with, and when they take the place of the
//! old ones.
//!
//! Nothing here is done by itself: the caller makes the new parts, reads logs, ends them and writes the manifest, and asks after each of these
//! what comes next. All that is decided by stands in shared storage, so whoever comes after a crash goes on by the same rule.

mod cut;
mod dial;
mod switch;

pub use cut::{SHARDS_MAX, Share, hashes, recut, shards_for};
pub use dial::{KeptAt, start};
pub use switch::{LogState, SWITCH_LIMITS, SwitchLimits, SwitchStep, TAIL_BYTES_MAX, may_switch, switch, tails_fit};
