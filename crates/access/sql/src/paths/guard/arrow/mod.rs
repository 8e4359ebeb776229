//! Arrow IPC files and streams.

mod body;
mod codec;
mod columns;
mod footer;
mod layout;
mod messages;
mod scan;
mod stream;

pub(super) use columns::Asked;
pub(super) use scan::{ArrowOpener, schema};
