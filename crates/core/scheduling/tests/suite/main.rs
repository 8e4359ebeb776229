//! What the pure decisions of transfers promise.

mod share;
mod window;
mod window_properties;
