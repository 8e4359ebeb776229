//! forebay-shared-storage
