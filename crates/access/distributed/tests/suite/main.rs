//! A whole cluster in one process: coordinator, workers, scheduler, executors, over a real S3 server.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod audit;
mod bed;
mod calls;
mod copies;
mod forms;
mod handing;
mod jobs;
mod joins;
mod losses;
mod ports;
mod queries;
mod shards;
mod shuffles;
mod stages;
mod statements;
