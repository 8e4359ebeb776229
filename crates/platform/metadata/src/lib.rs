//! forebay-metadata
