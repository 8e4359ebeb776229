//! The tiers from outside.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod children;
mod cost;
mod damage;
mod disks;
mod eviction;
mod fills;
mod folder;
mod full_disk;
mod model;
mod pins;
mod restart;
mod scrub;
mod storm;
mod support;
