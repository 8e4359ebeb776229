//! The coordinator: who is in the cluster, what is mounted, pinned and defined, and who may take how much from
//! shared storage.
//!
//! Owns: membership by lease, the versions of the view, the shares of each mount's bandwidth bound over workers and
//! clients, and the catalogue (mounts, pins, external tables), which is written to the metadata database before anyone
//! sees a change. Never does: reading data, and deciding where bytes are, which is `placement`'s, computed by everyone
//! from the view.
//!
//! `decide` is a pure state machine: an event and the time in, commands out. `driver` carries the commands out, answers
//! connections and ticks. What is not in the database (members, shares, budgets) is soft state, rebuilt within a lease
//! of a restart from the workers' own reports.
//!
//! Start with [`Coordinator::start`].

#![warn(unreachable_pub)]

mod decide;
mod driver;
mod settings;

pub use driver::Coordinator;
pub use settings::{CoordinatorSettings, PlacementSettings};
