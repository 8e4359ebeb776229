//! A whole cluster in one process: coordinator, workers, scheduler, executors, over a real S3 server.

mod bed;
mod jobs;
mod losses;
mod ports;
mod queries;
mod shuffles;
mod snapshots;
