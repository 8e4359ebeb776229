//! The client against scripted peers (what no real worker does on demand) and against whole small clusters.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

mod cluster;
mod drain;
mod mood;
mod scripted;

mod beside;
mod failover;
mod in_place;
mod loops;
mod nodes;
mod placement;
mod prefetch;
mod reads;
mod routing;
mod stores;
mod versions;
mod writes;
