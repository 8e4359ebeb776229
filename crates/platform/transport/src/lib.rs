//! forebay-transport
