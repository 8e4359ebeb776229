//! Navigation: budgets, curves, levels, choices, repairs.

mod budgets;
mod choices;
mod lendings;
mod plans;
mod properties;
mod repairs;
mod residences;
mod support;
