//! The figures that pages show: a table says which, rounds of the benchmarks measure them, one JSON file keeps them, and the pages
//! are written from that file alone. Nobody edits a figure by hand.
//!
//! Start at [`Table`], then [`Record`]: what a page says is a function of the record, and what the record says of its rounds.

mod bar;
mod checkout;
mod machine;
mod measure;
mod pull;
mod record;
mod show;
mod spread;
mod table;

pub use bar::{Bar, Verdict};
pub use checkout::Checkout;
pub use machine::Machine;
pub use measure::{Programs, gather};
pub use pull::{Pulled, pull};
pub use record::{Entry, Measured, Peer, Point, Record, Run, Start};
pub use show::{Section, limits_section, list_section, pages, readme_section};
pub use spread::Spread;
pub use table::{Bench, Better, Figure, Table};
