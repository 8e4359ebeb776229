//! The object stores that one query sees: what it has listed and opened stays as it was for the whole query.

mod footers;
mod observed;
mod registry;
mod rooted;
mod routes;

pub(crate) use observed::{Observed, Seen};
pub(crate) use registry::QueryStores;
pub(crate) use rooted::Rooted;
pub(crate) use routes::Routes;
