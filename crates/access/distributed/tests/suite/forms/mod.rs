//! Forms of columns that are read without decoding: table files, and what workers have decoded.

mod hot;
mod tables;
