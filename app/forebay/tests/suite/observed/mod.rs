//! What processes tell of the work that they do, and that they are there.

mod alive;
mod collector;
mod slow;
mod traces;
