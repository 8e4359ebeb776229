//! What is done with a dataset as a whole.

mod making;
mod orders;
