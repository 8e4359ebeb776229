//! The names that a query can use: the session's views and tables, external tables, and paths.

mod definitions;
mod names;
mod tables;
mod told;

pub use names::TableName;

pub(crate) use definitions::Definitions;
pub(crate) use names::all;
pub(crate) use tables::{QueryTables, catalog_of, own_name};
pub(crate) use told::without_metadata;

/// The one catalog.
pub(crate) const CATALOG: &str = "forebay";
/// Its schema.
pub(crate) const SCHEMA: &str = "public";
