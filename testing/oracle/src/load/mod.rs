//! What clients do, all of it taken down.

mod failures;
mod keys;
pub mod nodes;
pub mod objects;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use tokio::time::sleep;

use crate::history::Recorder;

pub use failures::{GIVEN_UP_AFTER, answered, cut, given_up, of_client, of_nodes, within};
pub use keys::Keys;

/// What all clients share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Where it is taken down.
    pub recorder: Recorder,
    over: AtomicBool,
}

impl Shared {
    /// Whether clients go on.
    pub fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// Clients end after what they are at.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Waits for about so long.
pub async fn pause(chance: &mut StdRng, about: Duration) {
    sleep(about.mul_f64(chance.random_range(0.3..1.7))).await;
}
