//! What is in shared storage now, as fresh as each mount's rule wants it.
//!
//! Owns: the current versions of objects with what the store says of them, and listings.
//!
//! Never does: give bytes, which `read` does; what the first request for an unknown object brings along goes into the tiers.
//!
//! Start with [`Catalogue::latest`].

mod attributes;
mod current;
mod forget;
mod list;
mod listings;

use std::sync::Arc;

pub(crate) use current::OpenedLatest;
use listings::Listings;

use crate::cluster::Cluster;
use crate::origin::Origin;
use crate::versions::Versions;

/// Versions and listings of objects.
pub(crate) struct Catalogue {
    versions: Arc<Versions>,
    listings: Listings,
    origin: Arc<Origin>,
    cluster: Arc<Cluster>,
}

impl Catalogue {
    pub(crate) fn new(versions: Arc<Versions>, origin: Arc<Origin>, cluster: Arc<Cluster>) -> Self {
        Self { versions, listings: Listings::default(), origin, cluster }
    }
}
