//! What is outside of a process, simulated: the system's clock and chance ([`system`]), disks ([`disks`]), and the network ([`network`]).

mod descriptor;
pub(crate) mod disks;
pub(crate) mod door;
mod ends;
mod files;
mod links;
pub(crate) mod network;
pub(crate) mod packet;
pub(crate) mod points;
mod processes;
mod switches;
pub(crate) mod system;
mod wire;
