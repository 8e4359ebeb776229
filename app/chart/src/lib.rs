//! Pictures of figures as SVG.
//!
//! Owns: lines over two axes ([`Chart`]), bars side by side ([`Bars`]), and the strokes that both are made of ([`Canvas`]) for
//! pictures of another shape. Never does: measuring, files.

mod bars;
mod canvas;
mod chart;
mod scale;

pub use bars::{Bars, Row};
pub use canvas::{Anchor, COLOURS, Canvas};
pub use chart::{Chart, Line};
pub use scale::step_near;
