//! Ways of leading a cluster side by side, in scenarios that have names.

mod report;
mod scenarios;

use forebay_placement::{Concurrency, Policy, Weigh};
use forebay_types::{Error, Result};
use serde::Serialize;

use crate::cluster::{Knowledge, Routing};
use crate::decide::Leading;
use crate::metrics::Outcome;
use crate::scenario::{Scenario, Way};

pub use report::{chart, csv};
pub use scenarios::{NAMES, named};

/// The ways that have names, and what each is. A scenario is compared in this order.
pub const WAYS: [(&str, &str); 15] = [
    ("getafix", "the default: sticky plan with slack, spread, and of two workers the one that says that its queue is shorter"),
    ("getafix-budget-2", "the same with the storage of two replicas of each segment, where it shortens queues most"),
    ("getafix-2", "the same with two replicas of each segment at least"),
    ("getafix-2-answers", "the same by what answers tell of queues: nobody is asked, as for short reads"),
    ("getafix-accesses", "the default weighing operations, however much work each is"),
    ("getafix-halving", "the default with popularity aged as the paper has it, however much what is read has changed"),
    ("getafix-without-garbage", "the default without garbage collection, which only matters where room is scarce"),
    ("getafix-paper", "the paper's plan, its routing table"),
    ("getafix-paper-without-garbage", "the same without garbage collection"),
    ("getafix-paper-random", "the paper's plan, any replica"),
    ("scarlett", "replicas by peak concurrency, any replica"),
    ("scarlett-mean", "replicas by mean concurrency, any replica"),
    ("uniform-equal", "as many replicas of every segment as getafix stores on average, any replica"),
    ("uniform-2-jsq", "two replicas of every segment, the shorter queue by perfect knowledge"),
    ("uniform-2-jsq-answers", "the same by what answers tell"),
];

/// A way by its name: one of [`WAYS`], `getafix-budget-N` and `getafix-N` with N, or `uniform-N` with N. `uniform-equal`
/// depends on a run of `getafix`, and is what [`compare`] makes of it.
pub fn way(name: &str) -> Result<Way> {
    let by = |policy: Policy, routing: Routing| Way { leading: Leading::by(policy), routing };
    let scarlett = |concurrency| by(Policy::Scarlett { concurrency, delta: 1, budget: None }, Routing::RANDOM);
    let answers = Routing { knowledge: Knowledge::Answers, ..Routing::SHORTEST };
    Ok(match name {
        "getafix" => by(Policy::Getafix, Routing::CLIENT),
        "getafix-halving" => {
            let way = by(Policy::Getafix, Routing::CLIENT);
            Way { leading: Leading { follow_shifts: false, ..way.leading }, ..way }
        }
        "getafix-accesses" => {
            let way = by(Policy::Getafix, Routing::CLIENT);
            Way { leading: Leading { weigh: Weigh::Accesses, ..way.leading }, ..way }
        }
        "getafix-without-garbage" => without_garbage(by(Policy::Getafix, Routing::CLIENT)),
        "getafix-paper-without-garbage" => without_garbage(by(Policy::GetafixPaper, Routing::TABLE)),
        "getafix-paper" => by(Policy::GetafixPaper, Routing::TABLE),
        "getafix-paper-random" => by(Policy::GetafixPaper, Routing::RANDOM),
        "scarlett" => scarlett(Concurrency::Peak),
        "scarlett-mean" => scarlett(Concurrency::Mean),
        _ => {
            if let Some(rest) = name.strip_prefix("getafix-") {
                let (rest, routing) = match rest.rsplit_once('-') {
                    Some((rest, "answers")) => (rest, Routing::UNASKED),
                    _ => (rest, Routing::CLIENT),
                };
                let mut way = by(Policy::Getafix, routing);
                if let Some(budget) = rest.strip_prefix("budget-").and_then(|n| n.parse().ok()) {
                    way.leading.plan.budget = budget;
                    return Ok(way);
                }
                if let Ok(minimum) = rest.parse() {
                    way.leading.minimum = minimum;
                    return Ok(way);
                }
            }
            let (number, routing) = match name.strip_prefix("uniform-").unwrap_or_default() {
                number if number.ends_with("-jsq") => (number.trim_end_matches("-jsq"), Routing::SHORTEST),
                number if number.ends_with("-jsq-answers") => (number.trim_end_matches("-jsq-answers"), answers),
                number => (number, Routing::RANDOM),
            };
            let Some(replicas) = number.parse().ok().filter(|n| (1.0..1e4).contains(n)) else {
                let names: Vec<&str> = WAYS.iter().map(|(name, _)| *name).collect();
                let message = format!(
                    "{name:?} is no way: use getafix-budget-N, getafix-N or uniform-N with N replicas, or {}",
                    names.join(", ")
                );
                return Err(Error::invalid(message));
            };
            by(Policy::Uniform { replicas }, routing)
        }
    })
}

fn without_garbage(way: Way) -> Way {
    Way { leading: Leading { garbage_from: None, ..way.leading }, ..way }
}

/// A way and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The way's name.
    pub way: String,
    /// The middle over the seeds.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Runs a scenario in each of the ways, with seeds 1 to `seeds`.
pub fn compare(scenario: &Scenario, names: &[String], seeds: u64) -> Result<Vec<Row>> {
    let mut own: Option<Outcome> = None;
    let mut rows = Vec::new();
    for name in names {
        let way = if name == "uniform-equal" {
            let own = if let Some(own) = &own { own.clone() } else { scenario.middle(&way("getafix")?, seeds) };
            equal_to(&own, scenario)
        } else {
            way(name)?
        };
        let outcome = scenario.middle(&way, seeds);
        if name == "getafix" {
            own = Some(outcome.clone());
        }
        rows.push(Row { way: name.clone(), outcome });
    }
    Ok(rows)
}

/// Uniform replication with as many replicas as 75 of 100 windows of `own` ended with (Getafix, section 5.4).
pub(crate) fn equal_to(own: &Outcome, scenario: &Scenario) -> Way {
    let replicas = (own.replicas_p75 / scenario.segments_in_all() as f64).max(1.0);
    Way { leading: Leading::by(Policy::Uniform { replicas }), routing: Routing::RANDOM }
}
