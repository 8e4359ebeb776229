//! Table files: what is written and read, and what is left out.

mod blooms;
mod tables;
