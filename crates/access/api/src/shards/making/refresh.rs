//! Datasets that follow objects: what these have now is taken over, and how often that is looked at.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use forebay_shards::Follows;
use forebay_types::{ForebayPath, parse_duration};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::work::{Task, WORK, WorkStatus, work};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;
use crate::shards::asked::{Asked, DatasetAsked, TIMEOUT_PATTERN, Timeout};
use crate::shards::visit::Coming;
use crate::shards::{Datasets, REFUSALS, asked};
use crate::visitor::Sender;

const PATH: &str = "/api/v1/shards/refresh";
/// Workers look no more often.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// How it stands with a dataset's refreshes.
#[derive(JsonSchema, Serialize)]
pub(in crate::shards) struct RefreshStatus {
    /// The folder that it lies in.
    dataset: String,
    /// What it follows; not there where it follows nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<Follows>,
    /// The last refresh that was asked for at this address; not there where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkStatus>,
}

pub(in crate::shards) const REFRESHED: Described = Described {
    verb: Verb::Get,
    path: PATH,
    about: "Which objects a dataset follows, how the last refresh ended, and how the one stands that was asked for here.",
    parameters: Some(DatasetAsked::json_schema),
    body: None,
    answer: Content {
        kind: "application/json",
        about: "How it stands with its refreshes, by whomever.",
        shape: |generator| generator.subschema_for::<RefreshStatus>(),
        example: None,
    },
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(in crate::shards) async fn refreshed(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<DatasetAsked>, Refusal>,
) -> Result<Json<RefreshStatus>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_refreshed");
    let DatasetAsked { dataset, timeout } = coming.asked(asked)?;
    let visit = coming.read(dataset, timeout)?;
    let shards = visit.open().await?;
    let follows = visit.within(Follows::of(&shards)).await?;
    let work = visit.datasets().works.status(visit.dataset(), Task::Refresh);
    Ok(Json(RefreshStatus { dataset: visit.dataset().to_string(), follows, work }))
}

pub(in crate::shards) const REFRESH: Described = Described {
    verb: Verb::Post,
    path: PATH,
    about: "Has a dataset say what the objects say now that it follows. Goes on after the timeout: ask how it stands.",
    parameters: Some(DatasetAsked::json_schema),
    body: None,
    answer: WORK,
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(in crate::shards) async fn refresh(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<DatasetAsked>, Refusal>,
) -> Result<Json<WorkStatus>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_refresh");
    let DatasetAsked { dataset, timeout } = coming.asked(asked)?;
    let changing = coming.change(dataset, timeout)?;
    work(&changing, Task::Refresh).await.map(Json)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::shards) struct EveryAsked {
    /// Its folder: `/MOUNT/FOLDER`.
    #[schemars(with = "String", extend("pattern" = asked::DATASET_PATTERN), example = &"/lake/orders.shards")]
    #[serde(deserialize_with = "asked::path")]
    dataset: ForebayPath,
    /// How often workers look whether the objects have changed, with a unit and a second at least, or `off`.
    #[schemars(with = "String", extend("pattern" = "^(off|[0-9]+(\\.[0-9]+)?(ms|s|m|h|d))$"), example = &"5m")]
    every: Every,
    /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

/// How often a dataset is refreshed; none where nobody does so by himself.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Every(Option<Duration>);

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(None));
        }
        let every = parse_duration(text).map_err(|error| error.message().to_string())?;
        if every >= EVERY_MIN { Ok(Self(Some(every))) } else { Err("a second at least, as in 60s, or off".to_string()) }
    }
}

impl<'de> Deserialize<'de> for Every {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::asking::from_text(deserializer)
    }
}

/// How often a dataset is refreshed from now on.
#[derive(JsonSchema, Serialize)]
pub(in crate::shards) struct RefreshedEvery {
    /// The folder that it lies in.
    dataset: String,
    /// In milliseconds; 0 where nobody does so by himself.
    every_ms: u64,
}

pub(in crate::shards) const EVERY: Described = Described {
    verb: Verb::Put,
    path: PATH,
    about: "Has workers look so often whether the objects have changed that a dataset follows, or not by themselves any more.",
    parameters: Some(EveryAsked::json_schema),
    body: None,
    answer: Content {
        kind: "application/json",
        about: "The dataset's manifest says so.",
        shape: |generator| generator.subschema_for::<RefreshedEvery>(),
        example: None,
    },
    or: None,
    refusals: REFUSALS,
    is_open: false,
};

pub(in crate::shards) async fn every(
    State(datasets): State<Arc<Datasets>>,
    sender: Sender,
    asked: Result<Asked<EveryAsked>, Refusal>,
) -> Result<Json<RefreshedEvery>, Refusal> {
    let coming = Coming::of(&datasets, &sender, "shard_refresh_every");
    let EveryAsked { dataset, every: Every(every), timeout } = coming.asked(asked)?;
    let changing = coming.change(dataset, timeout)?;
    let shards = changing.refresh_every(every).await?;
    let every_ms = shards.dataset().following.as_ref().map_or(0, |following| following.every_ms);
    Ok(Json(RefreshedEvery { dataset: shards.path().to_string(), every_ms }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_is_a_time_of_a_second_at_least_or_off() {
        assert_eq!("off".parse(), Ok(Every(None)));
        assert_eq!("1s".parse(), Ok(Every(Some(EVERY_MIN))));
        for wrong in ["", "5", "999ms", "never"] {
            assert!(wrong.parse::<Every>().is_err(), "{wrong}");
        }
    }
}
