//! The client against scripted peers (what no real worker does on demand) and against whole small clusters.

mod scripted;

mod failover;
mod in_place;
