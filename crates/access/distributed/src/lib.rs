//! SQL on many machines, run by Apache Ballista.
