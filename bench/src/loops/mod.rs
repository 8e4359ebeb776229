//! The loops from what workers measure to what is decided by it, on processes of their own: what they count, how fast they say to be,
//! copies of what has become hot, and one order over all ways in.

mod bed;
mod counted;
mod hot_spot;
mod slow;
mod statements;
mod together;

use clap::ValueEnum;
use forebay_bench_harness::Figure;
use forebay_types::Result;

/// Which of them.
#[derive(Clone, Copy, ValueEnum)]
pub enum Loops {
    /// Operations that are reported against those that were issued, by each way in, from 1 to 20,000 a second.
    Counted,
    /// An object becomes hot and stops to be, by S3 alone.
    HotSpot,
    /// One of four workers sends half as much from now on.
    SlowWorker,
    /// SQL, S3 and the client API at once under a bound, with and without a load in the background, and two plans in their order beside them.
    Together,
}

impl Loops {
    /// Measures it.
    pub async fn figures(self) -> Result<Vec<Figure>> {
        match self {
            Self::Counted => counted::counted().await,
            Self::HotSpot => hot_spot::hot_spot().await,
            Self::SlowWorker => slow::slow_worker().await,
            Self::Together => together::together().await,
        }
    }
}
