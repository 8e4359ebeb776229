//! NextCharIdx (psi), the one large array of a shard: from the row of a suffix to the row of the suffix one symbol later.
//!
//! Rows are grouped in columns by first symbol, and each column begins at a multiple of 128 rows, so that a block of 128
//! has one symbol and its values grow. The few rows that this leaves unused are never pointed to.

mod block;
mod column;
mod encode;
mod read;

pub(crate) use column::Column;
pub(crate) use encode::{PsiBytes, PsiWriter};
pub(crate) use read::{Place, Psi};

/// Rows of a block.
pub(crate) const BLOCK: u32 = 128;
