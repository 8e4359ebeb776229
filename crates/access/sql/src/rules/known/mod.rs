//! What the engine knows of columns below a node, and takes for known above it, where the node adds nulls.
//!
//! Owns: outer joins (`outer_joins`) and grouping sets (`grouping`), below which nothing is known of such columns.
//! Never does: know more of them than the engine.
//!
//! Start with [`outer_joins`].

mod grouping;
mod outer_joins;

pub(super) use grouping::grouping_sets;
pub(super) use outer_joins::outer_joins;
