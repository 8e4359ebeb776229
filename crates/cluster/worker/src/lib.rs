//! forebay-worker
