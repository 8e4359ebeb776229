//! The engine's rules of planning, each where it answers rightly.
//!
//! Owns: what is put around rules of DataFusion that gave rows that are wrong; a line of each says which.
//! Never does: plan by itself.
//!
//! Start with [`logical`] and [`physical`].

mod by_name;
mod null_keys;

pub(crate) use by_name::careful as physical;
pub(crate) use null_keys::careful as logical;
