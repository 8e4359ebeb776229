//! Connections as others see them: both ends over real sockets.

mod calls;
mod desk;
