use std::sync::Arc;
use std::time::Duration;

use metrics::counter;

use crate::serving::Serving;

/// Time between two steps.
const STEP: Duration = Duration::from_millis(500);
/// Time between the end of a round and the next one, so that a small store is not gone through all the time.
const ROUND_PAUSE: Duration = Duration::from_secs(60);

/// Verifies the pages of both tiers for ever, so many bytes a second. One that does not verify is dropped, and fetched again when it
/// is wanted: what is damaged in memory is found by nobody else.
pub(crate) async fn scrub(serving: Arc<Serving>, bytes_per_sec: u64) {
    let budget = (bytes_per_sec * STEP.as_millis() as u64 / 1000).max(1);
    let mut at = Default::default();
    loop {
        tokio::time::sleep(STEP).await;
        let step = serving.store.scrub(at, budget).await;
        counter!("forebay_worker_scrubbed_bytes").increment(step.bytes);
        if step.bad_pages > 0 {
            counter!("forebay_worker_bad_pages").increment(step.bad_pages);
        }
        at = match step.next {
            Some(next) => next,
            None => {
                tokio::time::sleep(ROUND_PAUSE).await;
                Default::default()
            }
        };
    }
}
