//! The model of a cluster: its queues against theory, its seeds, and an oracle that watches the decisions.

mod misroutes;
mod oracle;
mod planned;
mod runs;
mod safety;
mod shards;
mod traces;
mod workloads;
