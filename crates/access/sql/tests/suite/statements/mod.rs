//! Statements as they run: by whose threads, with which values, and what is told of slow ones.

mod computing;
mod parameters;
mod slow;
mod temporary;
