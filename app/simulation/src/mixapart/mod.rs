//! Jobs of tasks over data behind a link of shared storage, led by `forebay_scheduling::Schedule`.

mod bars;
mod bins;
mod cache;
mod compare;
mod engine;
mod figures;
mod jobs;
mod measures;
mod outcome;
mod replay;
mod settings;
mod sustained;
#[cfg(test)]
mod tests;
mod tiers;

pub use bars::{MIXAPART_BARS, MixApartBar, mixapart_bars};
pub use bins::FACEBOOK_BINS;
pub use compare::{MixApartRow, mixapart_chart, mixapart_csv, mixapart_rows, mixapart_tier_rows};
pub use figures::{MIXAPART_FIGURES, capacity_chart, mixapart_figure};
pub use jobs::MixApartJob;
pub use outcome::{MixApartBatch, MixApartOutcome};
pub use replay::{MixApartReplay, mixapart_jobs, mixapart_replays};
pub use settings::MixApartSettings;
pub use sustained::{Sustained, sustained};

use self::engine::Engine;
use self::jobs::Arrivals;
use crate::workload::Micros;

/// A cluster under the settings' steady load; a function of its settings.
pub fn mixapart(settings: &MixApartSettings) -> MixApartOutcome {
    let end = (settings.secs * 1e6) as Micros;
    let measures = Engine::new(settings, Arrivals::new(settings), end / 4).run(end);
    MixApartOutcome::of(settings, &measures)
}

/// A cluster with these jobs, in the order of their arrival, and no others, until the last is done.
pub fn mixapart_batch(settings: &MixApartSettings, jobs: &[MixApartJob]) -> MixApartBatch {
    let measures = Engine::new(settings, jobs.iter().copied(), 0).run(Micros::MAX);
    MixApartBatch::of(settings, jobs.len(), &measures)
}
