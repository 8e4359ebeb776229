//! Answers: gets, searches, counts.

pub(crate) mod chains;
pub(crate) mod index;
pub(crate) mod interval;
pub(crate) mod locate;
pub(crate) mod postings;
pub(crate) mod predicate;
pub(crate) mod regex;
pub(crate) mod search;
