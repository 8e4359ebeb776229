//! Clients that read by skew without a pause, check every byte, and count what they got.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use forebay_client::Client;
use forebay_types::ObjectVersion;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::LiveSettings;
use super::rig::{Rig, content};

const READ_BYTES: usize = 1 << 20;

/// Tasks that read, one read after the other, each an operation of its own.
pub(super) struct Readers {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

struct Shared {
    client: Client,
    versions: Vec<ObjectVersion>,
    contents: Vec<Vec<u8>>,
    ranks: Vec<usize>,
    /// Sums of the ranks' parts of the reads.
    steps: Vec<f64>,
    shifted: AtomicBool,
    stop: AtomicBool,
    bytes: AtomicU64,
    reads: AtomicU64,
    failed: AtomicU64,
    wrong: AtomicU64,
    first_error: std::sync::OnceLock<String>,
}

/// What became of the reads.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) reads: u64,
    pub(super) failed: u64,
    pub(super) wrong: u64,
    pub(super) first_error: Option<String>,
}

impl Readers {
    pub(super) fn start(rig: &Rig, settings: LiveSettings) -> Self {
        let mut sum = 0.0;
        let steps = (1..=settings.objects).map(|rank| {
            sum += (rank as f64).powf(-settings.theta);
            sum
        });
        let shared = Arc::new(Shared {
            client: rig.client.clone(),
            versions: rig.versions.clone(),
            contents: (0..settings.objects).map(|number| content(number, settings.object_bytes)).collect(),
            ranks: rig.ranks.clone(),
            steps: steps.collect(),
            shifted: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
            first_error: std::sync::OnceLock::new(),
        });
        let mut tasks = JoinSet::new();
        for reader in 0..settings.readers as u64 {
            let random = SmallRng::seed_from_u64(settings.seed.wrapping_mul(1000) + reader);
            tasks.spawn(Arc::clone(&shared).read_on(random));
        }
        Self { shared, tasks }
    }

    /// Bytes that were read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.shared.bytes.load(Relaxed)
    }

    /// From now on other objects are the popular ones.
    pub(super) fn shift(&self) {
        self.shared.shifted.store(true, Relaxed);
    }

    pub(super) async fn stop(mut self) -> Tally {
        self.shared.stop.store(true, Relaxed);
        while self.tasks.join_next().await.is_some() {}
        let shared = &self.shared;
        Tally {
            reads: shared.reads.load(Relaxed),
            failed: shared.failed.load(Relaxed),
            wrong: shared.wrong.load(Relaxed),
            first_error: shared.first_error.get().cloned(),
        }
    }
}

impl Shared {
    async fn read_on(self: Arc<Self>, mut random: SmallRng) {
        while !self.stop.load(Relaxed) {
            let object = self.draw(&mut random);
            let content = &self.contents[object];
            let start = random.random_range(0..=content.len() - READ_BYTES.min(content.len()));
            let end = (start + READ_BYTES).min(content.len());
            let read = self.client.read(self.client.operation(), &self.versions[object], start as u64..end as u64).await;
            self.reads.fetch_add(1, Relaxed);
            match read {
                Ok(bytes) if bytes[..] == content[start..end] => {
                    self.bytes.fetch_add(bytes.len() as u64, Relaxed);
                }
                Ok(_) => {
                    self.wrong.fetch_add(1, Relaxed);
                }
                Err(error) => {
                    self.failed.fetch_add(1, Relaxed);
                    self.first_error.get_or_init(|| error.to_string());
                }
            }
        }
    }

    fn draw(&self, random: &mut SmallRng) -> usize {
        let all = self.steps.last().copied().unwrap_or(0.0);
        let drawn = random.random::<f64>() * all;
        let rank = self.steps.partition_point(|step| *step < drawn).min(self.ranks.len() - 1);
        let shift = if self.shifted.load(Relaxed) { self.ranks.len() / 2 } else { 0 };
        self.ranks[(rank + shift) % self.ranks.len()]
    }
}
