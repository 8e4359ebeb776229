//! Arrow IPC files and streams.

mod body;
mod codec;
mod footer;
mod layout;
mod messages;
mod nulls;
mod scan;
mod stream;

pub(super) use scan::{ArrowOpener, schema};
