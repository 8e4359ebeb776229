//! Arrow Flight SQL on the embedded engine.
