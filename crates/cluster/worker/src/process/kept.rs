//! What was kept in the tiers before the worker's start.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use forebay_types::{Result, SegmentId, segment_count};

use crate::rooms::Rooms;

/// Entries of a listing that are asked for at once.
const PAGE_ENTRIES: usize = 1000;
/// Where a listing fails it is tried again after so long, later and later.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_MAX: Duration = Duration::from_secs(3600);

/// The disk tier comes back with what is kept, but not with what that is of: what objects below a pin are now is kept on, and all else no
/// longer. Ends when that is done.
pub(crate) async fn look_over(rooms: Arc<Rooms>) {
    let mut left: BTreeSet<SegmentId> = rooms.origin.store.kept().into_iter().collect();
    let mut pause = AGAIN;
    while let Err(error) = keep_on(&rooms, &mut left).await {
        tracing::debug!(%error, "could not look which of what was kept is pinned");
        forebay_runtime::time::sleep(pause).await;
        pause = (pause * 2).min(AGAIN_MAX);
    }
    rooms.origin.keep_no_longer(&left);
}

/// Takes out of `left` what objects below a pin are now.
async fn keep_on(rooms: &Rooms, left: &mut BTreeSet<SegmentId>) -> Result<()> {
    for pin in &rooms.cluster.view().pins {
        if left.is_empty() {
            break;
        }
        let storage = rooms.origin.mount(pin.mount).await?.storage()?;
        let mut after = None;
        loop {
            let page = rooms.catalogue.list_page(&storage, &pin.prefix, false, after.as_ref(), PAGE_ENTRIES).await?;
            for info in &page.objects {
                for index in 0..segment_count(info.version.size) {
                    let segment = SegmentId::of(&info.version, index);
                    if left.remove(&segment) {
                        rooms.origin.note_kept(&info.version, segment);
                    }
                    // Sparse files have many segments.
                    tokio::task::coop::consume_budget().await;
                }
            }
            after = page.next;
            if after.is_none() || left.is_empty() {
                break;
            }
        }
    }
    Ok(())
}
