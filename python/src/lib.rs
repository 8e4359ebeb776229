//! The Python package: a thin door over the client and the SQL engine.
