//! forebay-block-store
