//! Rules that look at what a statement means: what is counted of rows that are alike, and what a struct has within that is null.
//!
//! Owns: statements that the engine plans as something else, put right before they are optimized.
//! Never does: make a plan faster.
//!
//! Start with [`around`].

mod alike;
mod needless_sorts;
mod null_within;

use std::sync::Arc;

use datafusion::optimizer::AnalyzerRule;

pub(super) use needless_sorts::left_out;
use null_within::NullWithin;

type Analyzing = Arc<dyn AnalyzerRule + Send + Sync>;

/// The engine's rules, which make types one, and what comes before and after that.
pub(super) fn around(rules: &[Analyzing]) -> Vec<Analyzing> {
    let before: [Analyzing; 2] = [Arc::new(alike::Alike), Arc::new(NullWithin { chosen: true })];
    let behind: Analyzing = Arc::new(NullWithin { chosen: false });
    before.into_iter().chain(rules.iter().map(Arc::clone)).chain([behind]).collect()
}
