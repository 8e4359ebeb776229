//! Statements as they run: within which bounds, by whose threads, with which values, and what is told of slow ones.

mod bounds;
mod computing;
mod distinct_from;
mod lambdas;
mod orders;
mod parameters;
mod slow;
mod subqueries;
mod temporary;
