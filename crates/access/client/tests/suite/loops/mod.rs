//! What decisions go by in a running cluster: what workers say of themselves, and what they give each other.

mod counted;
mod once;
mod rooms;
