//! The short way: a signed GET or HEAD of an object with nothing unusual about it, all of which is at hand in this process.
//!
//! It takes what it is sure of and leaves everything else, refusals among it, to the way of all requests; what it answers is
//! what would be answered there.

mod answer;
mod request;

pub(crate) use answer::answer;
