//! Files that executors write for a statement (`COPY .. TO`, `INSERT INTO`), and that become visible together at its end.
//!
//! Each task writes drafts (`exec`), which nobody sees, and answers with a row for each. Of a task that runs again, or twice, one
//! answer is taken, and who asked the statement commits the drafts of those, and of no others (`commit`).

mod commit;
mod exec;
mod options;
mod rows;
mod sink;
mod travel;
mod writing;

pub(crate) use commit::committed;
pub use options::SinkOptions;
pub(crate) use sink::keeps;
pub use travel::{DraftsTo, drafts_of, drafts_to_send};
pub(crate) use writing::Writing;
