//! [`object_store::ObjectStore`] over a client: paths are `MOUNT/KEY`.
//!
//! [`LiveStore`] reads what is current under each mount's rule; [`SnapshotStore`] pins every object at the version that
//! it saw first. Such a path can't say every key: keys with an empty part (`a//b`, a trailing `/`), with parts `.` or
//! `..`, or with control characters are left out of listings here; [`crate::Client`] itself knows them all.

mod errors;
mod get;
mod listing;
mod live;
mod paths;
mod snapshot;
mod upload;
mod versioned;

pub use errors::{from_store_error, to_store_error};
pub use live::LiveStore;
pub use snapshot::SnapshotStore;
