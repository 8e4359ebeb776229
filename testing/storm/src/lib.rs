//! The binary in a storm: real processes under a mixed load, one fault at a time, and an oracle over what clients were told.
//!
//! Owns: a cluster of the built binary ([`cluster`]), what is done to it ([`faults`]), what its clients do meanwhile ([`load`]), what
//! they were told ([`history`]), and what must hold of that ([`oracle`]).
//!
//! Never does: build the binary, look into its processes otherwise than their users can, or say that what was not tried has passed.
//!
//! Start with [`cell::run`].

pub mod cell;
pub mod cluster;
pub mod contents;
pub mod faults;
pub mod history;
pub mod load;
pub mod oracle;
pub mod report;
pub mod rest;
pub mod table;
