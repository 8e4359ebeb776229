//! The one door to time, chance, tasks and other hosts.
//!
//! Owns: what the time is, what is random, what runs beside its caller, how long somebody waits for it ([`deadline`]), and how a
//! connection to another host is made. Everything of Forebay that waits, draws, spawns or connects does it here, so that a test can hold
//! the clock (`tokio::time::pause` holds [`now`] too), repeat what chance gave ([`repeat`]) and be the network ([`simulated`]).
//!
//! Never does: anything of its own. In production each of these is the library's call and nothing else.
//!
//! What libraries do by themselves is past this door: Ballista, DataFusion, sqlx, hyper and tonic have clocks and tasks of their own.

#![warn(unreachable_pub)]

mod chance;
mod computing;
pub mod deadline;
pub mod net;
mod planted;
pub mod simulated;
mod tasks;
pub mod time;

pub use chance::{Repeated, draw_anew, fill_repeated, random, random_range, repeat};
pub use computing::{Computing, STACK_BYTES, spawn, spawn_left};
#[cfg(feature = "planted")]
pub use planted::plant;
pub use planted::{Defect, planted};
pub use simulated::is_simulated;
pub use tasks::{alive_tasks, run_behind, spawn_blocking};
pub use time::{now, system_time, unix_ms};
