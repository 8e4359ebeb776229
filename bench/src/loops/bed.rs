//! What all loops need: objects, what the coordinator says of them, when a window begins, and operations at a rate.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{Client, ControlReply, ControlRequest};
use forebay_protocol::{PlacementStatus, SegmentStatus};
use forebay_shared_storage::{Class, Get, GetRange, Storage};
use forebay_types::{Error, Key, ObjectVersion, Result};
use futures::future::try_join_all;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::rig::{Rig, path};

/// How often the coordinator is asked.
pub(super) const SOON: Duration = Duration::from_millis(20);
/// Segments that are asked for, of few that there are.
const SEGMENTS: u32 = 1_000;
/// Operations at once.
const AT_ONCE: usize = 16;
/// No window is so long.
const WINDOW_MAX: Duration = Duration::from_secs(60);

/// A new object, past any bound, and its version.
pub(super) async fn put(rig: &mut Rig, key: &str, bytes: Bytes) -> Result<ObjectVersion> {
    rig.s3.put(key, bytes).await?;
    Ok(rig.client.open(&path(key)?).await?.version)
}

/// Reads an object, or a part of it, by S3; how many bytes came.
pub(super) async fn get(storage: &Storage, key: &Key, range: GetRange) -> Result<u64> {
    let mut body = storage.get(Get { key, range, if_match: None, class: Class::Demand }).await?;
    let mut bytes = 0;
    while let Some(chunk) = body.next().await {
        bytes += chunk?.len() as u64;
    }
    Ok(bytes)
}

pub(super) async fn placement(client: &Client) -> Result<PlacementStatus> {
    match client.control(ControlRequest::Placement { limit: SEGMENTS }).await? {
        ControlReply::Placement(status) => Ok(*status),
        other => Err(other.unexpected()),
    }
}

/// What is known of an object's first segment.
pub(super) async fn segment(client: &Client, key: &Key) -> Result<Option<SegmentStatus>> {
    let segments = placement(client).await?.segments;
    Ok(segments.into_iter().find(|segment| segment.path.key() == key && segment.index == 0))
}

/// Operations that read it in the window that has closed. Waits until that is told, which it is as the next one begins; none after a minute.
pub(super) async fn told(client: &Client, key: &Key) -> Result<u64> {
    let began = Instant::now();
    loop {
        let operations = segment(client, key).await?.map_or(0, |segment| segment.operations);
        if operations > 0 || began.elapsed() > WINDOW_MAX {
            return Ok(operations);
        }
        sleep(SOON).await;
    }
}

/// Returns as a window begins.
pub(super) async fn window_begins(rig: &mut Rig) -> Result<()> {
    let marker = put(rig, "marker", Bytes::from_static(b"marker")).await?;
    rig.client.read(rig.client.operation(), &marker, 0..marker.size).await?;
    match told(&rig.client, &marker.key).await? {
        0 => Err(Error::internal("a read was reported in no window")),
        _ => Ok(()),
    }
}

/// Has operations done at a rate for so long, as many at once as that takes, and gives how many were done.
pub(super) async fn at_rate(a_second: u64, lasts: Duration, one: impl AsyncFn() -> Result<()>) -> Result<u64> {
    let (began, next, done) = (Instant::now(), Cell::new(0u64), Cell::new(0u64));
    let lanes = (0..AT_ONCE).map(|_| async {
        loop {
            let number = next.replace(next.get() + 1);
            let at = Duration::from_secs_f64(number as f64 / a_second as f64);
            if at.max(began.elapsed()) >= lasts {
                return Ok::<(), Error>(());
            }
            // The least sleep is a millisecond.
            if let Some(early) = at.checked_sub(began.elapsed()) {
                sleep(early).await;
            }
            one().await?;
            done.set(done.get() + 1);
        }
    });
    try_join_all(lanes).await?;
    Ok(done.get())
}

/// An error of readers that should still go on.
pub(super) fn all_well(readers: &mut JoinSet<Result<()>>) -> Result<()> {
    match readers.try_join_next() {
        None => Ok(()),
        Some(ended) => ended.map_err(|error| Error::internal(error.to_string()))?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn operations_are_done_at_the_rate_and_no_more_than_the_machine_gives() {
        let lasts = Duration::from_millis(200);
        let done = at_rate(100, lasts, async || Ok::<(), Error>(())).await.unwrap();
        assert!((2..=20).contains(&done), "{done}");
        let slow = async || {
            sleep(Duration::from_millis(50)).await;
            Ok::<(), Error>(())
        };
        let done = at_rate(1_000_000, lasts, slow).await.unwrap();
        assert!((1..=4 * AT_ONCE as u64).contains(&done), "{done}");
    }
}
