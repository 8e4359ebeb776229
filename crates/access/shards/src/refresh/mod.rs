//! Datasets that follow objects: what these have is written to the dataset's logs, as anybody's changes are.
//!
//! Owns: what is read when objects have come, changed or gone, which records that changes, and that one process does it at a time.
//!
//! Never does: read an object's format, which whoever refreshes brings along; say that an object was followed before all of its changes
//! are in shared storage.
//!
//! Start with [`refresh`].

mod files;
mod keys;
mod listing;
mod pass;
mod sources;
mod state;

pub use files::{ReadRecords, Records, check_followed};
pub(crate) use keys::store_keys;
pub(crate) use listing::check_from;
pub use listing::{is_visible, objects_followed, objects_like};
pub use pass::Refreshed;
pub use pass::refresh;
pub(crate) use sources::Sources;
pub use state::{Follows, RefreshState, RefusedObject};
