//! No code: this crate only unifies features, see its Cargo.toml.
