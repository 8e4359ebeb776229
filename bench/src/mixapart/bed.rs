//! A cluster with a bound on its link, caches that can be emptied, and measuring of one run on it.

use std::ops::Deref;
use std::time::{Duration, Instant};

use forebay_protocol::{AdminRequest, JobState};
use forebay_types::{BitRate, Error, MountOptions, Result};

use crate::cluster::{LocalCluster, Shape};
use crate::rig::{MOUNT, S3};
use forebay_bench_harness::cpu;

/// A cluster of this process over an S3 server of its own.
pub struct Bed {
    pub s3: S3,
    cluster: LocalCluster,
}

impl Deref for Bed {
    type Target = LocalCluster;

    fn deref(&self) -> &LocalCluster {
        &self.cluster
    }
}

impl Bed {
    pub async fn start(shape: &Shape) -> Result<Self> {
        let s3 = S3::start(None, Duration::ZERO)?;
        let cluster = LocalCluster::start(shape).await?;
        crate::rig::mount(&cluster.client, s3.endpoint(), None).await?;
        Ok(Self { s3, cluster })
    }

    /// The job that ended last.
    pub async fn last_job(&self) -> Result<JobState> {
        self.control()?.jobs().await?.pop().ok_or_else(|| Error::internal("no job ran on the cluster"))
    }

    /// The mount's bound, which holds when this returns.
    pub async fn bound(&self, bytes_per_sec: Option<u64>) -> Result<()> {
        let options = MountOptions {
            endpoint: Some(self.s3.endpoint().to_string()),
            bandwidth: bytes_per_sec.map(BitRate::from_bytes_per_sec),
            ..MountOptions::default()
        };
        self.client.control(AdminRequest::MountSet { name: MOUNT.parse()?, options }).await?;
        // Workers hear of it with their next heartbeat.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(())
    }

    /// Drops what is cached of these keys.
    pub async fn free(&self, keys: &[String]) -> Result<()> {
        let versions = self.versions(keys).await?;
        for client in self.readers.iter().chain([&self.client]) {
            client.free(&versions).await?;
        }
        Ok(())
    }

    /// Brings all of these keys under the bound, as `forebay load` does.
    pub async fn load(&self, keys: &[String]) -> Result<Run> {
        let versions = self.versions(keys).await?;
        self.measure(async { self.client.load(versions, false, |_| ()).await.map(|_| String::new()) }).await
    }

    /// Runs something that has an answer.
    pub async fn measure(&self, run: impl Future<Output = Result<String>>) -> Result<Run> {
        let cpu = || Ok::<_, Error>(cpu::own() + self.s3.cpu()?);
        let (start, before) = (Instant::now(), cpu()?);
        let answer = run.await?;
        let secs = start.elapsed().as_secs_f64();
        Ok(Run { secs, cpu_secs: (cpu()?.saturating_sub(before)).as_secs_f64(), answer })
    }

    /// Bytes that the workers have read from the sockets of shared storage.
    pub fn socket_bytes_in(&self) -> u64 {
        let reports = self.node.workers.iter().map(|worker| worker.report());
        reports.flat_map(|report| report.storage).map(|(_, counters)| counters.socket_bytes_in).sum()
    }

    async fn versions(&self, keys: &[String]) -> Result<Vec<forebay_types::ObjectVersion>> {
        let mut versions = Vec::new();
        for key in keys {
            versions.push(self.client.open(&crate::rig::path(key)?).await?.version);
        }
        Ok(versions)
    }

    /// Stops everything, the last started first.
    pub async fn stop(self) {
        self.cluster.stop().await;
    }
}

/// What a run took, with the CPU time of this process and of the S3 server.
pub struct Run {
    pub secs: f64,
    pub cpu_secs: f64,
    pub answer: String,
}
