//! What the model of a cluster is made of: workers with queues, links that segments are loaded over, clients that poll.

mod concurrency;
mod routing;
mod settings;
mod worker;

pub(crate) use concurrency::{Concurrent, InFlight};
pub(crate) use routing::{Client, Table};
pub use routing::{Knowledge, Routing};
pub use settings::{ClusterSettings, Straggler};
pub(crate) use worker::{Has, Worker};
