//! One flight from its beginning to the tier: from other workers that have its pages, and from shared storage.

use std::time::Duration;

use bytes::Bytes;
use forebay_runtime::simulated;
use forebay_shared_storage::Body;
use forebay_types::ErrorKind;

use super::admission::Permit;
use super::elsewhere::{Part, with_gaps};
use super::flight::{Flight, Landed, Wanted};
use super::means::Means;
use super::pour::{Pour, Stop};

/// Where a flight's bytes come from.
pub(crate) enum Source {
    /// Those who have its pages, and requests for exactly the rest.
    Fetch,
    /// An answer that has begun.
    Open {
        /// The answer.
        body: Body,
        /// Bytes before the flight's first.
        skip: u64,
        /// Its place among the mount's requests.
        permit: Permit,
    },
    /// Bytes of the whole run.
    Memory(Bytes),
}

/// Carries out one flight.
pub(crate) async fn transfer(means: &Means, flight: &Flight, wanted: &Wanted, source: Source) -> Landed {
    simulated::lingers("fetch", Duration::from_millis(500)).await;
    let mut pour = Pour::new(means, flight, wanted);
    let mut carried = carry(flight, wanted, source, &mut pour).await;
    if matches!(&carried, Err(Stop::Failed(error)) if error.kind() == ErrorKind::Corrupt) {
        // Not what the store says of the object. Once more, with nothing of what came: of two versions that were mixed, one may be whole by now.
        pour = Pour::new(means, flight, wanted);
        means.store.free(wanted.segment.id);
        carried = pour.request_anew().await;
    }
    match carried {
        Ok(()) => pour.finish(),
        Err(Stop::Gone) => Landed::Gone,
        Err(Stop::Failed(error)) => {
            if error.kind() == ErrorKind::Corrupt {
                drop(pour);
                means.store.free(wanted.segment.id);
            }
            if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::Corrupt) {
                // The version is not the current one any more: the next open must ask.
                means.versions.forget_version(&wanted.segment.version);
                means.elsewhere.outdated(&wanted.segment.version).await;
            }
            tracing::debug!(mount = %wanted.door.mount.name, key = %wanted.segment.version.key, %error, "fetch failed");
            Landed::Failed(error)
        }
    }
}

async fn carry(flight: &Flight, wanted: &Wanted, source: Source, pour: &mut Pour<'_>) -> Result<(), Stop> {
    let bytes = wanted.segment.bytes_of(flight.run);
    match source {
        Source::Memory(bytes) => pour.take(bytes).await,
        Source::Open { body, skip, mut permit } => pour.stream(bytes.end - bytes.start, body, skip, &mut permit).await,
        Source::Fetch => {
            let heard = pour.ask().await;
            for part in with_gaps(flight.run, heard.given()) {
                match part {
                    Part::Given(_, bytes) => pour.take(bytes).await?,
                    Part::Missing(run) => pour.request(run).await?,
                }
            }
            Ok(())
        }
    }
}
