//! Which workers have the changes of the dataset on their disks that the store has not.

use std::io::{self, Error};
use std::time::{Duration, Instant};

use forebay_shards::Shards;
use forebay_types::ForebayPath;
use tokio::time::sleep;

use super::dataset;
use crate::cluster::Cluster;

/// How long it is waited for a change that two disks have and the store has not.
const WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Which of the two workers whose disks acknowledge changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The one that writes the shard.
    Writer,
    /// The one that has the same.
    Second,
}

/// The place of a worker that has changes which the store has not, at this moment. An error where there is none: then nothing could be lost.
pub async fn claimant(cluster: &Cluster, part: Part) -> io::Result<usize> {
    let client = cluster.client(true).await?;
    let path: ForebayPath = dataset().parse().map_err(Error::other)?;
    let shards = Shards::open(&client, &path).await.map_err(Error::other)?;
    let began = Instant::now();
    while began.elapsed() < WITHIN {
        let status = shards.status().await.map_err(Error::other)?;
        let claims = status.into_iter().filter_map(|shard| shard.claim);
        if let Some(claim) = claims.max_by_key(|claim| claim.behind_bytes).filter(|claim| claim.behind_objects > 0) {
            let name = match part {
                Part::Writer => claim.writer,
                Part::Second => claim.second,
            };
            let view = client.view();
            let info = view.workers.iter().find(|info| info.id.to_string() == name);
            let place = info.and_then(|info| cluster.reached.iter().position(|address| info.address == address.to_string()));
            return place.ok_or_else(|| Error::other(format!("worker {name} is none of the cluster's")));
        }
        sleep(LOOK_EVERY).await;
    }
    Err(Error::other(format!("two disks had nothing that the store had not, for {WITHIN:?}")))
}
