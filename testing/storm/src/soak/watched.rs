//! What processes have, looked at again and again.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time::sleep;

use crate::cluster::{Cluster, Usage, metric};

const EVERY: Duration = Duration::from_secs(10);
/// What processes say of their tasks.
const TASKS: &str = "forebay_process_tasks";

/// What a process had at a time.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Since the soak began, in milliseconds.
    pub at_ms: u64,
    /// Its name.
    pub process: String,
    /// What it had.
    #[serde(flatten)]
    pub usage: Usage,
    /// Nobody asked it anything.
    pub at_rest: bool,
    /// Its tasks, where it was asked: at rest.
    pub tasks: Option<u64>,
}

/// All samples, each in a file too as soon as it is taken.
pub(super) struct Watched {
    began: Instant,
    next: Instant,
    pub(super) samples: Vec<Sample>,
    file: BufWriter<File>,
}

impl Watched {
    pub(super) fn begin(file: &Path) -> io::Result<Self> {
        let began = Instant::now();
        Ok(Self { began, next: began, samples: Vec::new(), file: BufWriter::new(File::create(file)?) })
    }

    /// Waits until a time, and looks at all processes every ten seconds.
    pub(super) async fn wait(&mut self, cluster: &mut Cluster, until: Instant) -> io::Result<()> {
        while Instant::now() < until {
            sleep(self.next.min(until).saturating_duration_since(Instant::now())).await;
            if Instant::now() >= self.next {
                self.next = Instant::now() + EVERY;
                self.look(cluster, false)?;
            }
        }
        Ok(())
    }

    /// Looks at all processes that run. Who is stopped is not asked anything.
    pub(super) fn look(&mut self, cluster: &mut Cluster, at_rest: bool) -> io::Result<()> {
        let at_ms = self.began.elapsed().as_millis() as u64;
        for process in cluster.processes() {
            // One that was killed has nothing.
            let Ok(usage) = process.usage() else { continue };
            let tasks = if at_rest { metric(process.http, TASKS).ok().flatten() } else { None };
            let tasks = tasks.map(|tasks| tasks as u64);
            let sample = Sample { at_ms, process: process.name.clone(), usage, at_rest, tasks };
            serde_json::to_writer(&mut self.file, &sample)?;
            self.file.write_all(b"\n")?;
            self.samples.push(sample);
        }
        self.file.flush()
    }
}
