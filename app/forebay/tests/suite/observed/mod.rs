//! What processes tell of the work that they do.

mod collector;
mod slow;
mod traces;
