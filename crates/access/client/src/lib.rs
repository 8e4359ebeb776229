//! forebay-client
