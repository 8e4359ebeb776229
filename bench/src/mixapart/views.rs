//! One data set in a cluster: made, run over, and with a part of it missing for a given reuse ratio.

use forebay_sql::Engine;
use forebay_types::{Error, Result};
use futures::stream::{self, StreamExt};
use tokio::task::JoinHandle;

use super::bed::{Bed, Run};
use super::cores;
use super::pages::{Work, job};

/// A set of page views in the bucket of a cluster.
pub struct Views {
    set: String,
    work: Work,
    pub keys: Vec<String>,
    pub bytes: u64,
}

impl Views {
    /// Makes the files of a set, of as many as there are cores at once.
    pub async fn make(bed: &mut Bed, set: &str, work: Work, files: usize) -> Result<Self> {
        let made = (0..files).map(|ix| tokio::task::spawn_blocking(move || work.file(ix as u64)));
        let mut made = stream::iter(made).buffered(cores() as usize);
        let (mut keys, mut bytes) = (Vec::new(), 0);
        while let Some(file) = made.next().await {
            let (key, data) = (work.key(set, keys.len()), file.map_err(|error| Error::internal(error.to_string()))??);
            bytes += data.len() as u64;
            bed.s3.put(&key, data).await?;
            keys.push(key);
        }
        Ok(Self { set: set.to_string(), work, keys, bytes })
    }

    /// The job, measured; a task a file.
    pub async fn run(&self, bed: &Bed) -> Result<Run> {
        let engine = self.engine(bed, 0).await?;
        bed.measure(async { Ok(format!("{:?}", engine.execute(&job(&self.set)).await?.collect().await?)) }).await
    }

    /// The job, begun.
    pub async fn start(&self, bed: &Bed, priority: i32) -> Result<JoinHandle<Result<()>>> {
        let engine = self.engine(bed, priority).await?;
        let job = job(&self.set);
        Ok(tokio::spawn(async move { engine.execute(&job).await?.collect().await.map(|_| ()) }))
    }

    /// An engine that knows what the files hold, so that none has to be read for it.
    async fn engine(&self, bed: &Bed, priority: i32) -> Result<Engine> {
        let engine = bed.engine(priority, self.keys.len()).await?;
        engine.execute(&self.work.table(&self.set)).await?.collect().await?;
        Ok(engine)
    }

    /// The job with all data local: the fastest of three runs after a first one that brings it.
    pub async fn local(&self, bed: &Bed) -> Result<Run> {
        self.run(bed).await?;
        let mut best = self.run(bed).await?;
        for _ in 0..2 {
            let run = self.run(bed).await?;
            if run.secs < best.secs {
                best = run;
            }
        }
        Ok(best)
    }

    /// The files that are missing at a reuse ratio, spread over the set.
    pub fn missing(&self, reuse: f64) -> Vec<String> {
        let count = (self.keys.len() as f64 * (1.0 - reuse)).round() as usize;
        (0..count).map(|at| self.keys[at * self.keys.len() / count].clone()).collect()
    }
}

/// Fails where an answer is not the one expected.
pub fn same(expected: &str, found: &str) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::internal(format!("the answer was {expected} and is {found}"))) }
}
