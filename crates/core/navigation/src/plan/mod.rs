//! The levels of one worker's replicas for the next period.

mod down;
mod draft;
mod exchange;
mod outcome;
mod postconditions;
mod signal;
mod up;

use forebay_types::Result;

pub use outcome::{Decision, Memory, Plan, Reason};

use crate::settings::Settings;
use crate::snapshot::Snapshot;

/// Which level each replica of one worker is to have, and why (README.md has the rules). Called once a period, with the plan
/// before; the same arguments give the same plan. O(n log n) for n
/// replicas, and O(n) more for each layer that is built and for each size of layer that finds no room.
/// `Invalid`: settings or a snapshot that can't be.
pub fn plan(settings: &Settings, snapshot: &Snapshot<'_>, previous: &Plan) -> Result<Plan> {
    settings.validate()?;
    snapshot.validate()?;
    let mut draft = draft::Draft::new(settings, snapshot, previous);
    down::shed(&mut draft);
    up::hold(&mut draft);
    down::relax(&mut draft);
    up::relieve(&mut draft);
    up::restore(&mut draft);
    let plan = draft.finish();
    postconditions::of_plan(settings, snapshot, &plan);
    Ok(plan)
}
