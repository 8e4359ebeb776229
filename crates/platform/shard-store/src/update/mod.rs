//! Updates that are not compressed yet: what the log says, record by record.

mod change;
mod log_store;
mod matches;
mod wanted;

pub use change::Change;
pub(crate) use log_store::{LogStore, Update};
pub(crate) use matches::Matcher;
pub use wanted::{ChangeIf, WantedChange};
