//! A worker as a process: its start, its place in the cluster, what runs without being asked, its end.
//!
//! Owns: the heartbeat that brings views, shares, orders and routes to the rooms, and takes their numbers along.
//!
//! Never does: answer a request.
//!
//! Start with [`Worker::start`].

#[cfg(test)]
mod away;
#[cfg(test)]
pub(crate) mod bed;
#[cfg(test)]
mod damage;
mod identity;
mod kept;
mod membership;
mod need;
mod scrub;
mod start;

pub use start::Worker;
