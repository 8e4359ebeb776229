//! The answering side of one connection: its handshake, its frames and calls, its ring, its end.

mod accept;
mod call;
mod kept;
mod live;
mod read;
mod ring;
mod shared;

pub(crate) use accept::serve;
pub(crate) use shared::Shared;
