//! Navigation: budgets, curves, levels, orders, choices, queues, repairs, changes of shards.

mod budgets;
mod choices;
mod claims;
mod lendings;
mod orders;
mod plans;
mod properties;
mod queues;
mod repairs;
mod repeats;
mod reshards;
mod residences;
mod support;
mod tellings;
