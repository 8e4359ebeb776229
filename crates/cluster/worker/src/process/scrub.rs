//! Pages that nobody reads are verified too.

use std::time::Duration;

use forebay_block_store::BlockStore;
use forebay_metrics::table;

/// Time between two steps.
const STEP: Duration = Duration::from_millis(500);
/// Time between the end of a round and the next one, so that a small store is not gone through all the time.
const ROUND_PAUSE: Duration = Duration::from_secs(60);

/// Verifies the pages of both tiers for ever, so many bytes a second. One that does not verify is dropped, and fetched again when it
/// is wanted: what is damaged in memory is found by nobody else.
pub(crate) async fn scrub(store: BlockStore, bytes_per_sec: u64) {
    let budget = (bytes_per_sec * STEP.as_millis() as u64 / 1000).max(1);
    let mut at = Default::default();
    loop {
        forebay_runtime::time::sleep(STEP).await;
        let step = store.scrub(at, budget).await;
        table::WORKER_SCRUBBED_BYTES.only().add(step.bytes);
        if step.bad_pages > 0 {
            table::WORKER_BAD_PAGES.only().add(step.bad_pages);
        }
        at = match step.next {
            Some(next) => next,
            None => {
                forebay_runtime::time::sleep(ROUND_PAUSE).await;
                Default::default()
            }
        };
    }
}
