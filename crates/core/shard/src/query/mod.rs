//! Answers: gets, searches, counts.

pub(crate) mod chains;
pub(crate) mod first;
pub(crate) mod locate;
#[cfg(test)]
mod paged;
pub(crate) mod predicate;
pub(crate) mod regex;
pub(crate) mod rows;
pub(crate) mod search;
pub(crate) mod test;
