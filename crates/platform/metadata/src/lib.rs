//! What the cluster must not forget: mounts, pins, external tables, tokens, checkpoints, and who leads.
//!
//! Owns: one schema on SQLite (a file in the data folder) or PostgreSQL (several machines), its migrations, and
//! leadership: the lock that only one coordinator holds, and the epoch that fences the writes of an earlier one.
//! Never does: who holds which bytes, which is soft state of the workers; credentials of shared storage, which are
//! in no table. Never says a database's password in errors or logs.
//!
//! Start with [`Metadata::open`] and [`Metadata::acquire_epoch`]. What differs between the two databases is in
//! `dialect.rs` and nowhere else. Beside them there is a [`Memory`], for simulations.

#![warn(unreachable_pub)]

mod connect;
mod database;
mod dialect;
mod faults;
mod leadership;
mod location;
mod memory;
mod metadata;
mod schema;
mod sqlite_file;

pub use database::StoredTable;
pub use memory::Memory;
pub use metadata::Metadata;
pub use schema::SCHEMA_VERSION;
