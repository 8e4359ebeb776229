//! Navigation: budgets, curves, levels, choices, repairs.

mod budgets;
mod choices;
mod plans;
mod properties;
mod repairs;
mod residences;
mod support;
