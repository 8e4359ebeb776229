//! Datasets that follow objects: what these have now is taken over, and how often that is looked at.

use std::str::FromStr;
use std::time::Duration;

use axum::Json;
use forebay_shards::Follows;
use forebay_types::parse_duration;
use schemars::JsonSchema;
use serde::Serialize;

use super::work::{Task, WORK, WorkStatus, work};
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;
use crate::shards::asked::DatasetAsked;
use crate::shards::visit::Come;
use crate::shards::{asked, described};

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

pub(in crate::shards) const REFRESHED: Described = described::<DatasetAsked>(
    Verb::Get,
    PATH,
    "Which objects a dataset follows, how the last refresh ended, and how the one stands that was asked for here.",
    Content::json::<RefreshStatus>("How it stands with its refreshes, by whomever."),
);

pub(in crate::shards) async fn refreshed(come: Come<DatasetAsked>) -> Result<Json<RefreshStatus>, Refusal> {
    let (coming, DatasetAsked { dataset, timeout }) = come.by_name("shard_refreshed")?;
    let visit = coming.read(dataset, timeout)?;
    let shards = visit.open().await?;
    let follows = visit.within(Follows::of(&shards)).await?;
    let work = visit.datasets.works.status(visit.dataset(), Task::Refresh);
    Ok(Json(RefreshStatus { dataset: visit.dataset().to_string(), follows, work }))
}

pub(in crate::shards) const REFRESH: Described = described::<DatasetAsked>(
    Verb::Post,
    PATH,
    "Has a dataset say what the objects say now that it follows. Goes on after the timeout: ask how it stands.",
    WORK,
);

pub(in crate::shards) async fn refresh(come: Come<DatasetAsked>) -> Result<Json<WorkStatus>, Refusal> {
    let (coming, DatasetAsked { dataset, timeout }) = come.by_name("shard_refresh")?;
    let changing = coming.change(dataset, timeout)?;
    work(&changing, Task::Refresh).await.map(Json)
}

asked::asked_of!(EveryAsked {
    /// How often workers look whether the objects have changed, with a unit and a second at least, or `off`.
    #[schemars(with = "String", extend("pattern" = "^(off|[0-9]+(\\.[0-9]+)?(ms|s|m|h|d))$"), example = &"5m")]
    #[serde(deserialize_with = "crate::asking::from_text")]
    every: Every,
});

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

/// How often a dataset is refreshed from now on.
#[derive(JsonSchema, Serialize)]
pub(in crate::shards) struct RefreshedEvery {
    /// The folder that it lies in.
    dataset: String,
    /// In milliseconds; 0 where nobody does so by himself.
    every_ms: u64,
}

pub(in crate::shards) const EVERY: Described = described::<EveryAsked>(
    Verb::Put,
    PATH,
    "Has workers look so often whether the objects have changed that a dataset follows, or not by themselves any more.",
    Content::json::<RefreshedEvery>("The dataset's manifest says so."),
);

pub(in crate::shards) async fn every(come: Come<EveryAsked>) -> Result<Json<RefreshedEvery>, Refusal> {
    let (coming, EveryAsked { dataset, every: Every(every), timeout }) = come.by_name("shard_refresh_every")?;
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
