//! Navigation: curves, levels, choices, repairs.

mod choices;
mod plans;
mod properties;
mod repairs;
mod residences;
mod support;
