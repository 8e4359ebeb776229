//! A dataset that follows objects which change, refreshed again and again by processes of which many are killed in the midst of it. Once all is
//! well, one more refresh has it say what the objects say.

use std::collections::BTreeMap;
use std::io::{self, Error};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_oracle::{Rule, Violation};
use forebay_shard::Key;
use forebay_shards::Shards;
use forebay_types::{ErrorKind, ForebayPath, Result};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{GOES_ON_MS, PAUSE, Seen};
use crate::cluster::{Cluster, Commands, FRESH, Ran};

/// Objects, how far the keys of one are from those of the next, and records of a version at most.
const OBJECTS: u64 = 4;
const APART: u64 = 10_000;
const RECORDS: u64 = 2_000;
/// Workers would look by themselves once a year: what is tried is what is seen.
const BY_ORDER: &str = "8760h";
const MADE_WITHIN: Duration = Duration::from_secs(60);
/// What a process asked for that was killed is done or not after this.
const DONE_AFTER: Duration = Duration::from_secs(3);
const CHANGED_WITHIN: Duration = Duration::from_secs(5);
/// The last refresh, once all is well.
const REFRESHED_WITHIN: Duration = Duration::from_secs(60);
const RECORDS_TOLD: usize = 5;

/// Who refreshes it.
#[derive(Clone)]
pub(super) struct Refreshing {
    client: Client,
    commands: Commands,
}

impl Refreshing {
    pub(super) async fn make(cluster: &Cluster) -> io::Result<Self> {
        let made = Self { client: cluster.client(true).await?, commands: cluster.commands() };
        for number in 0..OBJECTS {
            made.client.put(&object(number), version(number, 0), PutCondition::Any).await.map_err(Error::other)?;
        }
        let (dataset, from) = (dataset(), format!("/{FRESH}/followed"));
        let sizes = ["--shards", "2", "--replicas", "0.5,0.5", "--refresh", BY_ORDER];
        let arguments = [&["shard", "create", &dataset, "--from", &from, "--key", "id"][..], &sizes[..]].concat();
        match made.commands.run(&arguments, &[], MADE_WITHIN).await? {
            Some(Ran { code: Some(0), .. }) => Ok(made),
            other => Err(Error::other(format!("the dataset that follows objects is not made: {other:?}"))),
        }
    }

    /// Refreshes the dataset once more, and compares it with its objects.
    pub(super) async fn end(self) -> io::Result<Vec<Violation>> {
        sleep(DONE_AFTER).await;
        let (began, mut last) = (Instant::now(), String::new());
        while began.elapsed() < REFRESHED_WITHIN {
            match self.compared().await {
                Ok(violations) => return Ok(violations),
                Err(error) => last = error.to_string(),
            }
            sleep(PAUSE).await;
        }
        Ok(vec![Violation::new(Rule::Recovers, format!("{} is not refreshed within {REFRESHED_WITHIN:?}: {last}", dataset()))])
    }

    /// The processes, one after the other; `seed` says when they are killed.
    pub(super) async fn run(self, seen: Arc<Mutex<Seen>>, seed: u64) {
        let mut chance = StdRng::seed_from_u64(seed);
        for step in 1_u64.. {
            let number = chance.random_range(0..OBJECTS);
            let at = object(number);
            // Done or not: it is what is there at last that counts.
            let _ = match chance.random_ratio(1, 6) {
                true => timeout(CHANGED_WITHIN, self.client.delete(&at)).await.is_ok(),
                false => timeout(CHANGED_WITHIN, self.client.put(&at, version(number, step), PutCondition::Any)).await.is_ok(),
            };
            let within = Duration::from_millis(chance.random_range(GOES_ON_MS));
            let refreshed = self.refresh(within).await;
            let is_done = matches!(&refreshed, Ok(Some(Ran { code: Some(0), .. })));
            seen.lock().ran(refreshed);
            if !is_done {
                sleep(DONE_AFTER).await;
                self.let_go().await;
            }
            sleep(PAUSE).await;
        }
    }

    async fn refresh(&self, within: Duration) -> io::Result<Option<Ran>> {
        self.commands.run(&["shard", "refresh", &dataset(), "--json"], &[], within).await
    }

    /// Who ends while he refreshes keeps others from it for ten minutes, unless it is known that he has.
    async fn let_go(&self) {
        let held: ForebayPath = format!("{}/refresh", dataset()).parse().expect("a path");
        // Tried again after the next one.
        let _ = timeout(CHANGED_WITHIN, self.client.delete(&held)).await;
    }

    /// Refreshes it, and says of which records it does not say what their objects say.
    async fn compared(&self) -> io::Result<Vec<Violation>> {
        match self.refresh(REFRESHED_WITHIN).await? {
            Some(Ran { code: Some(0), .. }) => {}
            other => {
                self.let_go().await;
                return Err(Error::other(format!("{other:?}")));
            }
        }
        self.wrong().await.map_err(Error::other)
    }

    async fn wrong(&self) -> Result<Vec<Violation>> {
        let shards = Shards::open(&self.client, &dataset().parse()?).await?;
        let mut violations = Vec::new();
        for number in 0..OBJECTS {
            let said = self.said(number).await?;
            let keys: Vec<u64> = (0..RECORDS).map(|place| number * APART + place).collect();
            let asked: Vec<Key> = keys.iter().map(|key| Key::U64(*key)).collect();
            for (key, record) in keys.into_iter().zip(shards.get_many(&asked, None).await?) {
                let text = record.as_ref().and_then(|record| record["text"].as_str());
                if text != said.get(&key).map(String::as_str) && violations.len() < RECORDS_TOLD {
                    let what = format!("{}: the record of {key} is {text:?}, its object says {:?}", dataset(), said.get(&key));
                    violations.push(Violation::new(Rule::OneVersion, what));
                }
            }
        }
        Ok(violations)
    }

    /// What an object says; nothing where there is none.
    async fn said(&self, number: u64) -> Result<BTreeMap<u64, String>> {
        let info = match self.client.open(&object(number)).await {
            Ok(info) => info,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let bytes = self.client.read(self.client.operation(), &info.version, 0..info.version.size).await?;
        Ok(records_of(&String::from_utf8_lossy(&bytes)))
    }
}

fn dataset() -> String {
    format!("/{FRESH}/followed.shards")
}

fn object(number: u64) -> ForebayPath {
    format!("/{FRESH}/followed/{number}.jsonl").parse().expect("a path")
}

/// Some keys of the object's own, which are others with each version.
fn version(number: u64, version: u64) -> Bytes {
    let keys = (0..RECORDS).filter(|place| !(place + version).is_multiple_of(3)).map(|place| number * APART + place);
    let lines: String = keys.map(|key| format!("{}\n", json!({"id": key, "text": format!("of version {version}")}))).collect();
    lines.into()
}

fn records_of(lines: &str) -> BTreeMap<u64, String> {
    let record = |line: &str| -> Option<(u64, String)> {
        let record: serde_json::Value = serde_json::from_str(line).ok()?;
        Some((record["id"].as_u64()?, record["text"].as_str()?.to_owned()))
    };
    lines.lines().filter_map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_other_keys_and_say_which_they_are_of() {
        let of = |step: u64| records_of(&String::from_utf8_lossy(&version(2, step)));
        let (first, second) = (of(1), of(2));
        assert!(first.keys().any(|key| !second.contains_key(key)) && second.keys().any(|key| !first.contains_key(key)));
        assert!(first.iter().all(|(key, text)| (20_000..22_000).contains(key) && text == "of version 1"));
    }
}
