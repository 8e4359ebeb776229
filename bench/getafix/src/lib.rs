//! What plans of replicas cost, and how far they are from the least that any plan could have.
//!
//! Start with [`replicas`] (random instances against Best Fit and the optimum) and [`scale`] (large clusters).

mod clock;
mod counts;
mod exact;
mod replicas;
mod scale;

pub use clock::Clock;
pub use counts::{Dice, Shape, counts};
pub use exact::least_replicas;
pub use replicas::{ReplicasFigure, replicas};
pub use scale::{ScaleFigure, scale};
