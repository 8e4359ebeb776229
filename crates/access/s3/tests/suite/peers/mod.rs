//! The gateway with what others wrote: clients, libraries, and the suite that both stores pass.

mod clients;
mod conformance;
mod object_store;
