//! Waiting for what others bring about.

use std::time::{Duration, Instant};

/// Longer than anything takes that a test waits for, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it is so; fails the test after a minute.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        pause(what, began).await;
    }
}

/// The same where somebody has to be asked.
pub async fn until_asked(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        pause(what, began).await;
    }
}

async fn pause(what: &str, began: Instant) {
    assert!(began.elapsed() < PATIENCE, "still not so after a minute: {what}");
    tokio::time::sleep(Duration::from_millis(10)).await;
}
