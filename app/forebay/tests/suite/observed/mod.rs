//! What processes tell of the work that they do.

mod slow;
