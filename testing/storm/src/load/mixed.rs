//! Objects and temporary nodes, by all doors at once.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::{Client, NodeType};
use forebay_demo::S3Server;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use forebay_oracle::history::{Door, Recorder};
use forebay_oracle::load::Shared;
use forebay_oracle::load::nodes::{self, Group, Member};

use super::objects::{Family, KEYS, Reader, Writer, family};
use super::{doors, folder};
use crate::cluster::{AGING, Cluster, FRESH};

/// Clients a door that read objects.
const READERS: usize = 3;
/// Clients that read files of a folder that may hang.
const OF_FOLDER: usize = 2;
/// More than a load writes of an object.
const VERSIONS: u32 = 100_000;
/// Clients of each group of nodes.
const MEMBERS: u32 = 3;
/// Between two calls of a member.
const CALL_PAUSE: Duration = Duration::from_millis(25);

/// A load that runs.
pub struct Mixed {
    shared: Arc<Shared>,
    clients: JoinSet<()>,
    readers: Vec<Reader>,
    in_place: Client,
}

impl Mixed {
    /// Writes the first versions, then starts all clients, by a seed. No two loads of a cluster write the same versions, or use the same
    /// nodes.
    pub async fn start(cluster: &Cluster, store: &S3Server, seed: u64, number: u32) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (fresh, aging) = (doors::gateway(cluster, FRESH)?, doors::gateway(cluster, AGING)?);
        let (in_place, remote) = (cluster.client(true).await?, cluster.client(false).await?);
        let outside = doors::store(store)?;
        let mut clients = JoinSet::new();
        let mut chance = StdRng::seed_from_u64(seed);
        let mut own = || StdRng::seed_from_u64(chance.random());
        let first = number * VERSIONS + 1;
        for key in 0..KEYS {
            let gateway = Arc::clone(if family(key) == Family::Fresh { &fresh } else { &aging });
            let writer = Writer { key, gateway, client: remote.clone(), store: Arc::clone(&outside) };
            writer.write(&shared, first, false).await;
            clients.spawn(writer.run(Arc::clone(&shared), first, own()));
        }
        let readers = vec![
            Reader::Gateway { fresh, aging },
            Reader::Client { client: in_place.clone(), door: Door::InPlace },
            Reader::Client { client: remote.clone(), door: Door::Remote },
        ];
        for reader in readers.iter().flat_map(|reader| std::iter::repeat_n(reader, READERS)) {
            clients.spawn(reader.clone().run(Arc::clone(&shared), own()));
        }
        let groups = [("values", NodeType::KeyValue), ("more-values", NodeType::KeyValue), ("files", NodeType::File)];
        for (place, (name, kind)) in groups.into_iter().enumerate() {
            let group = Arc::new(Group::new(&format!("{name}-{number}"), kind));
            for member in 0..MEMBERS {
                let (client, door) = if member == 0 { (&in_place, Door::InPlace) } else { (&remote, Door::Remote) };
                let (group, number) = (Arc::clone(&group), place as u32 * MEMBERS + member);
                let member = Member { group, nodes: client.nodes(), door, number, pause: CALL_PAUSE };
                let (shared, chance) = (Arc::clone(&shared), own());
                clients.spawn(async move { member.run(&shared, chance).await });
            }
        }
        if cluster.beside.hanging.is_some() {
            folder::begin(&shared);
            for _ in 0..OF_FOLDER {
                clients.spawn(folder::reads(remote.clone(), Arc::clone(&shared), own()));
            }
        }
        let readers = readers.into_iter().chain([Reader::Store(outside)]).collect();
        Ok(Self { shared, clients, readers, in_place })
    }

    /// What is taken down.
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// Ends all clients, then reads every object once more by every door, and of the store itself; removes temporary nodes.
    pub async fn end(mut self) -> io::Result<Recorder> {
        super::end(&self.shared, &mut self.clients).await?;
        for key in 0..KEYS {
            for reader in &self.readers {
                reader.read(&self.shared, key, 0, u64::from(u32::MAX), None).await;
            }
        }
        // What is not there any more needs no removing; what is left of it is seen in the workers' metrics.
        let _ = self.in_place.nodes().delete(nodes::ROOT, true).await;
        let Self { shared, readers, in_place, .. } = self;
        drop((readers, in_place));
        super::recorded(shared)
    }
}
