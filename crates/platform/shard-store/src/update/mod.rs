//! Updates that are not compressed yet: what the log says, record by record.

mod change;
mod log_store;
mod matches;
mod values;
mod wanted;

pub use change::Change;
pub(crate) use log_store::{LogStore, Update};
pub(crate) use matches::Matcher;
pub(crate) use values::{Held, Values};
pub use wanted::{ChangeIf, WantedChange};
