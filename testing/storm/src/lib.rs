//! The binary in a storm: real processes under a mixed load, one fault at a time, and an oracle over what clients were told.
//!
//! Owns: a cluster of the built binary ([`cluster`]), what is done to it ([`faults`], [`cells`], [`struck`]) and what its clients do meanwhile ([`load`]). What they
//! were told, and what must hold of that, is in `forebay_oracle`.
//!
//! Never does: build the binary, look into its processes otherwise than their users can, or say that what was not tried has passed.
//!
//! Start with [`cell::run`], and with [`soak::run`] for hours of one cluster.

pub mod cell;
pub mod cells;
pub mod cluster;
pub mod faults;
pub mod load;
pub mod report;
pub mod rest;
pub mod soak;
pub mod struck;
pub mod table;
pub mod works;
