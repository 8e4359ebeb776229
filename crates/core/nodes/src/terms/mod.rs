//! What everything here is said in: names, identities, types and places of nodes, and why something failed.

mod error;
mod id;
mod kind;
mod location;
mod names;

pub use error::{NodeError, NodeErrorKind, NodeResult};
pub use id::{BlockRef, DirId, ROOT, UNCLAIMED_FOR};
pub use kind::{Affinity, NodeType, StorageClass};
pub use location::{LOCATION_BYTES_MAX, Location};
pub use names::{NAME_BYTES_MAX, PATH_BYTES_MAX, check_name, is_inside, split};
