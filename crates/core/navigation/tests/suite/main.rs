//! Navigation: budgets, curves, levels, orders, choices, repairs.

mod budgets;
mod choices;
mod lendings;
mod orders;
mod plans;
mod properties;
mod repairs;
mod residences;
mod support;
