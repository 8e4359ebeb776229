//! Connections as others see them: both ends over real sockets.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod calls;
mod descriptors;
mod desk;
mod ending;
mod guarded;
mod handshake;
mod listening;
mod local;
mod places;
mod raw;
mod ring;
mod strangers;
mod tls;
