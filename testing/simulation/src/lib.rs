//! Discrete-event models of a cluster that run the decision code as it is.
