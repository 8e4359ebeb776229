//! What is read over HTTP.

use forebay_types::MountName;

use crate::{Need, Place};

/// To see what a cluster says of itself, metrics among it: it names all mounts.
pub fn shown() -> Need {
    Need::read(Place::Everything)
}

/// To ask a dataset that lies in a mount.
pub fn dataset(mount: &MountName) -> Need {
    Need::read(Place::Named(mount.clone()))
}
