//! Connections as others see them: both ends over real sockets.

mod calls;
mod descriptors;
mod desk;
mod ending;
mod handshake;
mod listening;
mod raw;
mod strangers;
mod tls;
