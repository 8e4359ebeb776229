//! What pages show: numbers, the sections' text, and the files that have them.

mod number;
pub mod pages;
mod section;
mod sections;

pub use section::Section;
pub use sections::{limits_section, list_section, readme_section};
