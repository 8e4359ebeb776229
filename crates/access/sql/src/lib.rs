//! forebay-sql
