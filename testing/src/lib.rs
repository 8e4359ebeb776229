//! forebay-testing
