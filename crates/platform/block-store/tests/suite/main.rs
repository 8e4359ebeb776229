//! The tiers from outside.

mod children;
mod cost;
mod damage;
mod eviction;
mod fills;
mod folder;
mod full_disk;
mod model;
mod pins;
mod restart;
mod scrub;
mod support;
