//! What is asked about objects: where they are, and to bring them.

mod explain;
mod loads;
