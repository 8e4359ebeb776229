//! Navigation: budgets, curves, levels, orders, choices, repairs, changes of shards.

mod budgets;
mod choices;
mod claims;
mod lendings;
mod orders;
mod plans;
mod properties;
mod repairs;
mod repeats;
mod reshards;
mod residences;
mod support;
mod tellings;
