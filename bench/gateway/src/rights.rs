//! What it costs that every request is looked at: a warm read of 64 KiB by somebody whose requests are looked at, against one
//! by the owner, whose are not, in turns; and the time of one decision against that of a request of S3, where all are.

use std::sync::Arc;
use std::time::Instant;

use forebay_bench_harness::{Bar, Figure, Rounds, cpu};
use forebay_client::{AdminRequest, Client, ClientSettings, ControlReply};
use forebay_rights::{Caller, Need, Place, Who};
use forebay_transport::{Credential, Security, random_secret, unix_now};
use forebay_types::{ForebayPath, Grant, MountName, ObjectVersion, Role, Scope, Verifier};

use crate::load::{ranges, run};
use crate::rig::{BUCKET, Rig};

/// The bar: the upper end of the ratio's 95 % interval.
const BAR: f64 = 1.02;
const ROUNDS: usize = 10;
const READ_BYTES: u64 = 64 << 10;
const FILE_BYTES: u64 = 16 << 20;
/// What is read in place costs a hundredth of what goes over TCP.
const IN_PLACE_MORE: usize = 50;
const DECISIONS: u32 = 1_000_000;

/// Prints the figures; `reads` a round and side.
pub async fn rights(reads: usize) {
    let rig = Rig::start().await;
    rig.s3.set_bandwidth(None);
    let files = rig.store("rights", 1, FILE_BYTES as usize);
    let path: ForebayPath = files[0].parse().unwrap();
    let everywhere = holder(&rig, "everywhere", Scope::All).await;
    let lake = Scope::Only { mounts: vec![BUCKET.parse().unwrap()], temporary: false };
    let one_mount = holder(&rig, "lake", lake).await;
    for (name, holder, in_place) in
        [("in place", &everywhere, true), ("over TCP", &everywhere, false), ("over TCP, of one mount", &one_mount, false)]
    {
        let (owner, holder) = (connect(&rig, None, in_place).await, connect(&rig, Some(holder), in_place).await);
        let version = owner.open(&path).await.unwrap().version;
        // So that a round takes long enough to be measured.
        let reads = if in_place { reads * IN_PLACE_MORE } else { reads };
        let mut rounds = Rounds::default();
        for round in 0..=ROUNDS {
            // Who begins changes, so that neither has the warmer caches always.
            let (held, free) = match round % 2 {
                0 => (spent(&holder, &version, reads).await, spent(&owner, &version, reads).await),
                _ => {
                    let free = spent(&owner, &version, reads).await;
                    (spent(&holder, &version, reads).await, free)
                }
            };
            // The first is for the caches.
            if round > 0 {
                rounds.push(held, free);
            }
        }
        let (held, free) = rounds.medians();
        let (ratio, low, high) = rounds.ratio();
        let what = format!("rights: warm 64 KiB {name}, CPU, {ratio:.4}x [{low:.4}, {high:.4}]");
        Figure::new(what, held, "us", "the owner, who is not looked at", free, Bar::RatioAtMost(BAR)).print(true);
        let what = format!("rights: warm 64 KiB {name}, upper end of the interval");
        Figure::new(what, high, "x", "1", 1.0, Bar::ValueAtMost(BAR)).print(true);
    }
    through_s3(&rig, &files, reads).await;
}

/// A client that shows this, or the owner's.
async fn connect(rig: &Rig, shows: Option<&Credential>, in_place: bool) -> Client {
    let mut settings = ClientSettings::new(rig.coordinator.clone());
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
    let before = cpu::own().unwrap();
    for read in 0..reads as u64 {
        let start = read * 7 % places * READ_BYTES;
        let bytes = client.read(operation, version, start..start + READ_BYTES).await.unwrap();
        assert_eq!(bytes.len() as u64, READ_BYTES);
    }
    (cpu::own().unwrap() - before).as_secs_f64() * 1e6 / reads as f64
}

async fn through_s3(rig: &Rig, files: &[String], reads: usize) {
    let asks = ranges(files, FILE_BYTES, READ_BYTES, reads.min(1000));
    run(rig.address(), &asks, 4).await;
    let mut requests = Vec::new();
    for _ in 0..ROUNDS {
        let before = cpu::own().unwrap();
        run(rig.address(), &asks, 4).await;
        requests.push((cpu::own().unwrap() - before).as_secs_f64() * 1e6 / asks.len() as f64);
    }
    let request = forebay_bench_harness::median(requests);
    let name: MountName = BUCKET.parse().unwrap();
    let scope = Scope::Only { mounts: vec!["another".parse().unwrap(), name.clone()], temporary: true };
    let grant = Grant { role: Role::Read, scope, expires: Some(u64::MAX) };
    let keys = Credential::owner(&random_secret().unwrap()).unwrap().keys();
    let caller = Caller::new(Who::Holder(Arc::new(Verifier { id: "lake.1".into(), grant, created: 0, keys })));
    let need = Need::read(Place::Named(name));
    let began = Instant::now();
    for _ in 0..DECISIONS {
        std::hint::black_box(caller.may(std::hint::black_box(&need), unix_now(), |_| None)).unwrap();
    }
    let decision = began.elapsed().as_secs_f64() * 1e6 / f64::from(DECISIONS);
    let what = format!("rights: a 64 KiB range by S3 with its decision ({decision:.3} us)");
    Figure::new(what, request, "us", "the same less the decision", request - decision, Bar::RatioAtMost(BAR)).print(true);
}
