//! Carries out what `decide` says: connections, the database, shared storage, the clock.

mod coordinator;
mod deciding;
mod leader;
mod news;
mod queues;
mod reach;
mod running_time;
mod service;
mod shared;
mod supervise;
mod writer;

pub use coordinator::Coordinator;
