//! Shards as files: mapping, layers on disk, the log of updates.
