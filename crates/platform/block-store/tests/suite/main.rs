//! The tiers from outside.
