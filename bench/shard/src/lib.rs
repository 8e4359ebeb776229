//! Benchmarks of shards against what one would build instead.
