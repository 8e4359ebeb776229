//! The model of a cluster: workers with queues, links that segments are loaded over, clients that poll and pick, time.

mod access;
mod concurrency;
mod engine;
mod events;
mod lead;
mod observer;
mod routing;
mod settings;
mod worker;

pub(crate) use concurrency::Concurrent;
pub(crate) use engine::{Run, run};
pub use observer::{Fact, Observer, Unobserved};
pub use routing::{Knowledge, Routing};
pub use settings::{ClusterSettings, Straggler};
pub(crate) use worker::{Has, Worker};
