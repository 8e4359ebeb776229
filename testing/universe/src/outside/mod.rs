//! What is outside of a process, simulated: the system's clock and chance ([`system`]), and the network ([`network`]).

pub(crate) mod door;
mod ends;
pub(crate) mod network;
pub(crate) mod packet;
mod refuse;
pub(crate) mod system;
mod wire;
