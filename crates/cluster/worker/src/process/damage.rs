//! Pages that are damaged in memory: they reach no other worker, and don't stay.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use forebay_coordinator::CoordinatorSettings;
use forebay_demo::S3Server;
use forebay_protocol::{AdminRequest, ControlReply, Order};
use forebay_testbed::until;
use forebay_transport::Security;
use forebay_types::{Key, Mount, ObjectVersion, PAGE_BYTES, PageRun, SegmentId};

use super::bed::Bed;
use crate::cluster::ask;
use crate::origin::{Ahead, Priority};
use crate::rooms::Rooms;
use crate::{Tuning, Worker};

const BYTES: usize = 20 * PAGE_BYTES as usize;

struct Lab {
    s3: S3Server,
    bed: Bed,
    mount: Mount,
}

impl Lab {
    async fn start() -> Self {
        let (s3, bed) = (S3Server::of_bucket("lake").unwrap(), Bed::start(CoordinatorSettings::LEASE).await);
        s3.put("lake", "a", &bytes()).unwrap();
        let options = s3.mount_options();
        let add = AdminRequest::MountAdd { name: "lake".parse().unwrap(), url: "s3://lake".into(), options };
        let added = ask(bed.node.coordinator_at(), &Security::default(), &mut None, add).await.unwrap();
        let ControlReply::Mount(mount) = added else { panic!("a mount") };
        Self { s3, bed, mount }
    }

    async fn worker(&self, name: &str, scrub_bytes_per_sec: u64) -> Worker {
        let tuning = Tuning { beat: Duration::from_millis(50), scrub_bytes_per_sec, ..Tuning::default() };
        self.bed.worker(name, tuning).await
    }

    /// Has a worker hold the object, and damages a byte of it there.
    async fn damaged(&self, rooms: &Rooms) -> (ObjectVersion, SegmentId) {
        let version = rooms.catalogue.open(self.mount.id, &Key::new("a").unwrap()).await.unwrap().version;
        rooms
            .origin
            .prefetch(
                &version,
                &[(0, BYTES as u32)],
                Ahead { priority: Priority::Urgent, turn: None, keep: false, held_for: None },
            )
            .await
            .unwrap();
        let id = SegmentId::of(&version, 0);
        let offset = rooms.origin.store.pin(id, PageRun::new(7, 8)).unwrap().arena_offset() + 100;
        let arena = std::fs::File::from(rooms.origin.store.writable_arena().unwrap());
        arena.write_all_at(&[bytes()[7 * PAGE_BYTES as usize + 100] ^ 1], offset).unwrap();
        (version, id)
    }
}

fn bytes() -> Vec<u8> {
    (0..BYTES as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn held(rooms: &Rooms, id: SegmentId) -> Option<Vec<u8>> {
    rooms.origin.store.pin(id, PageRun::new(0, 20)).map(|pinned| pinned.to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_not_made_of_pages_that_were_damaged_at_its_source() {
    let lab = Lab::start().await;
    let (source, target) = (lab.worker("source", 0).await, lab.worker("target", 0).await);
    let (version, id) = lab.damaged(&source.rooms).await;
    until("they know each other", || target.rooms.cluster.view().workers.len() == 2).await;
    let gets = lab.s3.counters().gets;
    target.rooms.replicas.obey(vec![Order::Hold { version, index: 0, from: vec![source.id()] }]);
    until("it is held", || held(&target.rooms, id).is_some()).await;
    assert_eq!(held(&target.rooms, id).unwrap(), bytes());
    assert!(lab.s3.counters().gets > gets, "it is fetched from shared storage instead");
    assert_ne!(held(&source.rooms, id).unwrap(), bytes(), "or nothing was damaged");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_damaged_in_memory_is_found_and_dropped() {
    let lab = Lab::start().await;
    let worker = lab.worker("worker", 64 << 20).await;
    let (_, id) = lab.damaged(&worker.rooms).await;
    until("the page is dropped", || !worker.rooms.origin.store.state(id, PageRun::new(7, 8)).missing.is_empty()).await;
    assert_eq!(worker.rooms.origin.store.state(id, PageRun::new(0, 20)).missing, [PageRun::new(7, 8)], "and no other one");
}
