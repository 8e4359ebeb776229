//! Shards as files: mapping, layers on disk, the log of updates.

mod columns;
mod folder;
mod log;
mod question;
mod store;
mod update;

pub use columns::{Column, ColumnKind, Columns, JsonKinds, JsonRecords, key_of_value};
pub use log::{LocalLog, Log};
pub use question::{Condition, Literal, Test};
pub use store::{Batch, Building, Inspection, PartInspection, Sealer, Store, UpdateLimits};
pub use update::Change;
