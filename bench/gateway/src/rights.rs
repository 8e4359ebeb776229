//! What it costs that every request is looked at: a warm read of 64 KiB by somebody who may only read, against one by somebody who may
//! do all, in turns: in place, over TCP, and through S3.

use std::net::SocketAddr;

use forebay_bench_harness::{Bar, Figure, Rounds, Served, cpu, median};
use forebay_client::{AdminRequest, Client, ControlReply};
use forebay_transport::{Credential, Security, random_secret};
use forebay_types::{ForebayPath, Grant, ObjectVersion, Role, Scope};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::load::{Ask, ranges, run_as};
use crate::rig::{BUCKET, KEY, LIMITED, Rig};
use crate::sign::Key;

/// The bar: the upper end of the ratio's 95 % interval.
const BAR: f64 = 1.02;
const ROUNDS: usize = 10;
/// A round changes sides so often, and takes each side's median, so that what disturbs the machine for a while falls on both or on none.
const TURNS: usize = 21;
const READ_BYTES: u64 = 64 << 10;
const FILE_BYTES: u64 = 16 << 20;
/// What is read in place costs a hundredth of what goes over TCP.
const IN_PLACE_MORE: usize = 100;
/// Four connections at a time: more of them take as long.
const S3_MORE: usize = 2;
/// Connections of S3.
const CONNECTIONS: usize = 4;

/// Prints the figures; `reads` a round and side.
pub async fn rights(reads: usize) {
    stay_on_one_core();
    let rig = Rig::start().await;
    rig.s3.set_bandwidth(None);
    let files = rig.store("rights", 1, FILE_BYTES as usize);
    let path: ForebayPath = files[0].parse().unwrap();
    let everywhere = holder(&rig, "everywhere", Scope::All).await;
    let lake = Scope::Only { mounts: vec![BUCKET.parse().unwrap()], temporary: false };
    let one_mount = holder(&rig, "lake", lake).await;
    // Who may see some mounts only gets copies, since memory of a worker that is mapped shows all: in place is for who may read all.
    for (name, holder, in_place) in
        [("in place", &everywhere, true), ("over TCP", &one_mount, false), ("over TCP, of all mounts", &everywhere, false)]
    {
        let (owner, holder) = (connect(&rig, None, in_place).await, connect(&rig, Some(holder), in_place).await);
        let version = owner.open(&path).await.unwrap().version;
        // So that a round takes long enough to be measured.
        let reads = if in_place { reads * IN_PLACE_MORE } else { reads };
        let rounds = in_turns(async |held| spent(if held { &holder } else { &owner }, &version, reads / TURNS).await).await;
        print(name, "the owner", &rounds);
    }
    through_s3(reads).await;
}

/// Whether a worker's thread is on the core of who asks is worth a third of a read over TCP, and stays as it is for a while: all of them are
/// on one, and so are processes and threads that they start.
fn stay_on_one_core() {
    let all = sched_getaffinity(None).unwrap();
    let last = (0..CpuSet::MAX_CPU).rfind(|core| all.is_set(*core)).expect("it runs on one");
    let mut one = CpuSet::new();
    one.set(last);
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let id = thread.unwrap().file_name().to_str().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
        sched_setaffinity(id, &one).unwrap();
    }
}

/// Rounds of both sides: `spent` is what a read took who is looked at (`true`), and what it took the owner.
async fn in_turns(mut spent: impl AsyncFnMut(bool) -> f64) -> Rounds {
    let mut rounds = Rounds::default();
    for round in 0..=ROUNDS {
        let (mut held, mut free) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            // Who begins changes, so that neither has the warmer caches always.
            for of in [turn % 2 == 0, turn % 2 != 0] {
                (if of { &mut held } else { &mut free }).push(spent(of).await);
            }
        }
        // The first is for the caches.
        if round > 0 {
            rounds.push(median(held), median(free));
        }
    }
    rounds
}

/// The medians for the record; the bar is on the upper end of the interval.
fn print(name: &str, peer: &str, rounds: &Rounds) {
    let ((held, free), (ratio, low, high)) = (rounds.medians(), rounds.ratio());
    let what = format!("rights: warm 64 KiB {name}, CPU, {ratio:.4}x [{low:.4}, {high:.4}]");
    Figure::new(what, held, "us", peer, free, Bar::Nothing).print(true);
    let what = format!("rights: warm 64 KiB {name}, upper end of the interval");
    Figure::new(what, high, "x", "1", 1.0, Bar::ValueAtMost(BAR)).print(true);
}

/// A client that shows this, or the owner's.
async fn connect(rig: &Rig, shows: Option<&Credential>, in_place: bool) -> Client {
    let mut settings = rig.node.client_settings();
    settings.in_place = in_place;
    if let Some(shows) = shows {
        settings.security = Security::holder(shows.clone());
    }
    Client::connect(settings).await.unwrap()
}

async fn holder(rig: &Rig, name: &str, scope: Scope) -> Credential {
    let owner = connect(rig, None, false).await;
    let secret = random_secret().unwrap();
    let keys = Credential::owner(&secret).unwrap().keys();
    let grant = Grant { role: Role::Read, scope, expires: None };
    let reply = owner.control(AdminRequest::TokenAdd { name: name.into(), grant, keys }).await.unwrap();
    let ControlReply::Tokens(tokens) = reply else { panic!("{reply:?}") };
    // Workers hear of it within a second.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    Credential::of_token(&tokens[0].id, &secret).unwrap()
}

/// CPU of this process a read, in microseconds: client and worker together.
async fn spent(client: &Client, version: &ObjectVersion, reads: usize) -> f64 {
    let operation = client.operation();
    let places = FILE_BYTES / READ_BYTES;
    let before = cpu::own();
    for read in 0..reads as u64 {
        let start = read * 7 % places * READ_BYTES;
        let bytes = client.read(operation, version, start..start + READ_BYTES).await.unwrap();
        assert_eq!(bytes.len() as u64, READ_BYTES);
    }
    (cpu::own() - before).as_secs_f64() * 1e6 / reads as f64
}

/// The same GETs by a key for one mount and by one for all, by CPU time of the process that has the gateway, the worker and the
/// coordinator: who asks is not in it.
async fn through_s3(reads: usize) {
    let (served, told) = Served::start(["--serve", &FILE_BYTES.to_string()]).unwrap();
    let (gateway, path) = told.split_once(' ').unwrap();
    let gateway: SocketAddr = gateway.parse().unwrap();
    let asks: Vec<Ask> = ranges(&[path.to_owned()], FILE_BYTES, READ_BYTES, reads * S3_MORE / TURNS);
    let rounds = in_turns(async |held| {
        let key: Key = if held { LIMITED } else { KEY };
        let before = cpu::of_live_threads(served.id()).unwrap();
        run_as(key, gateway, &asks, CONNECTIONS).await;
        (cpu::of_live_threads(served.id()).unwrap() - before).as_secs_f64() * 1e6 / asks.len() as f64
    });
    print("by S3", "a key for all mounts", &rounds.await);
    served.end().unwrap();
}
