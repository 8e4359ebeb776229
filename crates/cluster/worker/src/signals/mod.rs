//! What a worker measures of itself.
//!
//! Owns: numbers for reports and metrics, the speed at which answers leave and the pace that bounds it, reads under way, how often
//! each segment is read, which objects are accessed, what left the tiers and came into them, and what a byte more of them would save.
//!
//! Never does: decide anything by them.
//!
//! Start with [`Signals`].

mod accessed;
mod changes;
mod load;
mod margin;
mod meters;
mod pace;
mod popularity;
mod seen;

use bytes::Bytes;

pub(crate) use accessed::{Accessed, Made};
pub(crate) use changes::Changes;
pub(crate) use load::{Load, Queued};
pub(crate) use margin::{Margin, Seen};
pub(crate) use meters::{Meters, ReadSums, ServedFrom, Shown, Standing};
pub(crate) use pace::Pace;
pub(crate) use popularity::{Popularity, UnderWay};

/// The worker's numbers.
pub(crate) struct Signals {
    pub(crate) meters: Meters,
    pub(crate) load: Load,
    pub(crate) popularity: Popularity,
    pub(crate) changes: Changes,
    pub(crate) accessed: Accessed,
    pace: Pace,
}

impl Signals {
    /// Without a number of bytes a second answers leave as fast as they can.
    pub(crate) fn new(serve_bytes_per_sec: Option<u64>) -> Self {
        let (meters, load) = (Meters::new(), Load::default());
        let (changes, accessed, pace) = (Changes::default(), Accessed::default(), Pace::new(serve_bytes_per_sec));
        Self { meters, load, popularity: Popularity::new(), changes, accessed, pace }
    }

    /// Answers leave at most so fast from now on.
    pub(crate) fn set_pace(&self, serve_bytes_per_sec: Option<u64>) {
        self.pace.set(serve_bytes_per_sec);
    }

    /// Waits for the turn of bytes to be sent, and gives their number.
    pub(crate) async fn send(&self, payload: &[Bytes]) -> u64 {
        let bytes = payload.iter().map(|bytes| bytes.len() as u64).sum();
        self.pace.send(bytes).await;
        bytes
    }
}
