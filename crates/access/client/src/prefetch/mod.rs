//! Bytes that are brought before anybody reads them, and what is held of them.
//!
//! Owns: fetching ahead of a plan's reader, loading whole versions, bringing what a schedule says to where it says, and asking
//! and changing what all workers hold of a version.
//!
//! Never does: give bytes to anybody, or fail a read: what could not be fetched ahead is read on demand.
//!
//! Start with [`Prefetches::begin`] and [`Prefetches::load`].

mod ahead;
mod bring;
mod held;
mod load;
mod segments;

use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{DataReply, DataRequest};

pub use ahead::Prefetch;
pub use bring::ReadAt;
pub use load::Loaded;
pub use segments::SegmentPlace;

use crate::connect::{Failure, Link, ask, misfit};
use crate::read::Courses;
use crate::route::Routes;

/// Demand goes first, so what is fetched for later may wait long.
const DEADLINE: Duration = Duration::from_secs(900);

/// What goes on beside reads.
pub(crate) struct Prefetches {
    routes: Arc<Routes>,
    courses: Arc<Courses>,
    /// How far a plan's fetching may be ahead of its reader.
    ahead_bytes: u64,
}

impl Prefetches {
    pub(crate) fn new(routes: Arc<Routes>, courses: Arc<Courses>, ahead_bytes: u64) -> Self {
        Self { routes, courses, ahead_bytes }
    }
}

/// Asks a worker to fetch; gives the bytes that it had to fetch.
async fn fetch(link: &Link, request: &DataRequest, deadline: Duration) -> Result<u64, Failure> {
    match ask(link, request, deadline).await? {
        DataReply::Fetched { bytes } => Ok(bytes),
        _ => Err(misfit(link, "prefetch")),
    }
}
