//! The one door to time, chance and tasks.
//!
//! Owns: what the time is, what is random, and what runs beside its caller. Everything of Forebay that waits, draws or spawns does
//! it here, so that a test can hold the clock (`tokio::time::pause` holds [`now`] too) and repeat what chance gave ([`repeat`]).
//!
//! Never does: anything of its own. In production each of these is the library's call and nothing else.
//!
//! What libraries do by themselves is past this door: Ballista, DataFusion, sqlx, hyper and tonic have clocks and tasks of their own.

#![warn(unreachable_pub)]

mod chance;
pub mod time;

pub use chance::{Repeated, random, random_range, repeat};
pub use time::{now, system_time};
pub use tokio::spawn;
