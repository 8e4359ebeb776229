//! Starting and asking the binary.

pub mod http;
mod process;
mod run;
mod store;
mod terminal;

pub use process::{Role, free_port};
pub use run::{Ran, after, command, forebay, forebay_as, forebay_in, forebay_with, interrupt, interrupted, until};
pub use store::{Bucket, csv, lake, lake_of, lake_with};
pub use terminal::Terminal;
