//! What each request needs: a row a request, and no request without one.

mod control;
mod data;
mod http;
mod nodes;
mod sql;

pub use control::control;
pub use data::{data, manifest_orders, notice, peer};
pub use http::{dataset, dataset_change, dataset_orders, http, load_of_others, object, shown, statement, temporary, tokens};
pub use nodes::{node, node_peer};
pub use sql::{executor, scheduler};
