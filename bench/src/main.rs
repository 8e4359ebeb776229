//! forebay-bench
fn main() {}
