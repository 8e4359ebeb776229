//! A cluster for one way of passing on rows between stages, and what a run takes on it.

use std::path::Path;
use std::time::Instant;

use forebay_protocol::AdminRequest;
use forebay_sql::Engine;
use forebay_types::{Error, MountOptions, Result};
use serde::Serialize;

use super::work::{Answers, Work};
use crate::cluster::{LocalCluster, Shape};
use crate::rig::MOUNT;
use forebay_bench_harness::cpu;

/// A cluster of this process over a folder of files.
pub struct Bed {
    engine: Engine,
    cluster: LocalCluster,
}

/// What a run took.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub secs: f64,
    pub write_secs: f64,
    pub fetch_secs: f64,
    pub cpu_secs: f64,
    pub bytes_passed: u64,
}

impl Bed {
    pub async fn start(shape: &Shape, sets: &[String], data: &Path, work: &Work) -> Result<Self> {
        let cluster = LocalCluster::start(shape).await?;
        let url = format!("file://{}", data.display());
        let mount = AdminRequest::MountAdd { name: MOUNT.parse()?, url, options: MountOptions::default() };
        cluster.client.control(mount).await?;
        cluster.client.refresh_view().await?;
        let engine = cluster.engine(0, work.partitions).await?;
        for set in sets {
            engine.execute(set).await?.collect().await?;
        }
        work.views(&engine).await?;
        Ok(Self { engine, cluster })
    }

    /// Runs it, when everything that it reads has been read once.
    pub async fn measure(&self, work: &Work) -> Result<(Measured, Answers)> {
        let control = self.cluster.control()?;
        if work.is_warmed_up() {
            work.run(&self.engine).await?;
        }
        let before = control.jobs().await?.len();
        let (times, cpu, start) = (self.cluster.shuffle_times(), cpu::own(), Instant::now());
        let answers = work.run(&self.engine).await?;
        let secs = start.elapsed().as_secs_f64();
        let (after, cpu) = (self.cluster.shuffle_times(), cpu::own().saturating_sub(cpu).as_secs_f64());
        let jobs = control.jobs().await?;
        if jobs.len() < before + work.queries() {
            return Err(Error::internal("a query did not run on the cluster"));
        }
        let bytes_passed = jobs[before..].iter().map(|job| job.bytes_passed).sum();
        let (write_secs, fetch_secs) = ((after.0 - times.0).as_secs_f64(), (after.1 - times.1).as_secs_f64());
        Ok((Measured { secs, write_secs, fetch_secs, cpu_secs: cpu, bytes_passed }, answers))
    }

    /// Stops everything, the last started first.
    pub async fn stop(self) {
        self.cluster.stop().await;
    }
}
