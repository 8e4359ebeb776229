//! What plans of replicas cost, and how far they are from the least that any plan could have.
//!
//! Start with [`replicas`] (random instances against Best Fit and the optimum), [`scale`] (large clusters), [`worked`]
//! (the paper's examples), [`live`] (a cluster that follows a shift of popularity) and [`policies`] (clusters that plan otherwise
//! under the same reads).

mod counts;
mod exact;
mod live;
mod replicas;
mod scale;
mod worked;

pub use counts::{Dice, Shape, counts};
pub use exact::least_replicas;
pub use live::{LiveFigure, LiveSettings, live, policies};
pub use replicas::{ReplicasFigure, replicas};
pub use scale::{ScaleFigure, scale};
pub use worked::{WorkedFigure, worked};
