//! The bytes of an object, piece by piece.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_client::Client;
use forebay_types::{Error, ObjectVersion, OperationId};
use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of an answer that come before its head is sent.
pub(crate) const FIRST_BYTES: u32 = 1 << 20;
/// Bytes of a large piece.
const LARGE_BYTES: u64 = 4 << 20;
/// Large pieces of all answers under way at once: 80 MiB, if no worker of this host gives them in place.
pub(crate) const LARGE_PIECES: usize = 20;
/// The rest of an answer is planned when it has more bytes than this: what the pieces that are asked for at once leave over.
const PLANNED_BYTES: u64 = 2 * LARGE_BYTES;
/// What is brought ahead of a client at most.
const AHEAD_BYTES: u64 = 4 * LARGE_BYTES;
/// Bytes of a piece when there is no room for a large one, so that slow clients hold nobody up.
const SMALL_BYTES: u64 = 128 << 10;

/// The rest of an object's bytes, piece by piece as the client takes them, one piece ahead of it; where `is_cold`, they may not be in a tier.
/// All are of one version, or the answer is broken off.
pub(crate) fn rest(
    client: Client,
    room: Arc<Semaphore>,
    operation: OperationId,
    version: ObjectVersion,
    range: Range<u64>,
    is_cold: bool,
) -> BoxStream<'static, Result<Bytes, Error>> {
    // What is long and not here is a plan as a query's is: it is brought in its turn, in the window that all plans share.
    let is_planned = is_cold && range.end - range.start > PLANNED_BYTES;
    let ahead = is_planned.then(|| client.prefetch_near(operation, vec![(version.clone(), vec![range.clone()])], AHEAD_BYTES));
    let version = Arc::new(version);
    let places = futures::stream::unfold(range, move |range| {
        let room = Arc::clone(&room);
        async move {
            if range.is_empty() {
                return None;
            }
            let permit = room.try_acquire_owned().ok();
            let bytes = if permit.is_some() { LARGE_BYTES } else { SMALL_BYTES };
            // On the borders of pieces, so that many readers ask for the same ones.
            let end = ((range.start / bytes + 1) * bytes).min(range.end);
            assert!(range.start < end && end <= range.end, "a piece is some of what is left: {range:?} up to {end}");
            Some(((range.start..end, permit), end..range.end))
        }
    });
    places
        .map(move |(piece, permit)| {
            let (client, version) = (client.clone(), Arc::clone(&version));
            async move {
                let bytes = client.read(operation, &version, piece).await?;
                Ok(if let Some(permit) = permit { Bytes::from_owner(Held { bytes, _permit: permit }) } else { bytes })
            }
        })
        .buffered(2)
        // Until the last piece is there, or nobody reads any more.
        .inspect(move |_| _ = &ahead)
        .boxed()
}

/// A large piece counts until its last byte is with the client.
struct Held {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
