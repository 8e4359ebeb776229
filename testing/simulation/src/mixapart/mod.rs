//! Jobs of tasks over data behind a link of shared storage, led by `forebay_scheduling::Schedule`.

mod bins;
mod engine;
mod outcome;
mod settings;
mod sustained;
#[cfg(test)]
mod tests;

pub use bins::FACEBOOK_BINS;
pub use outcome::MixApartOutcome;
pub use settings::MixApartSettings;
pub use sustained::{Sustained, sustained};

/// One run of the model; a function of its settings.
pub fn mixapart(settings: &MixApartSettings) -> MixApartOutcome {
    engine::Engine::new(settings).run()
}
