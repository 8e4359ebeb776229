//! What plans of replicas cost, and how far they are from the least that any plan could have.
//!
//! Start with [`replicas`] (random instances against Best Fit and the optimum), [`scale`] (large clusters), [`live`] (a
//! cluster that follows a shift of popularity), [`versus`] (ways to replicate beside each other) and [`slow`] (a worker that is slow).

mod counts;
mod exact;
mod live;
mod replicas;
mod scale;

pub use counts::{Dice, Shape, counts};
pub use exact::least_replicas;
pub use live::{LiveFigure, LiveSettings, live, slow, versus};
pub use replicas::{ReplicasFigure, replicas};
pub use scale::{ScaleFigure, scale};
