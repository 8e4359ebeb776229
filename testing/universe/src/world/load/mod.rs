//! What the clients of a world do.

mod epochs;
mod followed;
mod outlaws;
mod queries;
mod records;
mod resident;
mod s3;
mod sets;
mod tree;
mod trespass;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use bytes::Bytes;
use forebay_client::{AdminRequest, Client};
use forebay_oracle::Promise;
use forebay_oracle::contents::{self, RANGE_BYTES_MIN};
use forebay_oracle::history::{Door, What};
use forebay_oracle::load::nodes::{self, Member};
use forebay_oracle::load::{GIVEN_UP_AFTER, Shared, answered, objects, of_client, pause};
use forebay_runtime::time::{sleep, timeout};
use forebay_shared_storage::{Class, Get, GetRange, PutCondition, Storage, StorageSettings};
use forebay_types::{BitRate, Error, ForebayPath, Key, Mount, MountOptions, Result, Validate};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::course::Course;
use super::hosts::{self, BUCKET, STORE_ADDRESS};

pub(super) use resident::resident;

/// Objects that one client each writes; every second one is of the mount whose versions are taken for current for a while. All are small
/// ones: a world is to be soon over.
const OWN: Range<u32> = contents::SMALL..contents::SMALL + 6;
/// Objects beside these that all clients write, at the same time and all at once; one of each mount.
const SHARED: Range<u32> = OWN.end..OWN.end + 2;
/// Objects that are written once, so that a disk has the version that is read when its worker starts again; one of each mount.
const STILL: Range<u32> = SHARED.end..SHARED.end + 2;
/// Objects that are written past Forebay; one of each mount.
const OUTSIDE: Range<u32> = STILL.end..STILL.end + 2;
const ALL: Range<u32> = OWN.start..OUTSIDE.end;
/// Versions of these are written so often, and by all within so long.
const MEET_EVERY: Duration = Duration::from_secs(2);
const MEET_WITHIN: Duration = Duration::from_millis(20);
pub(super) const MOUNTS: [&str; 2] = ["fresh", "aging"];
/// So long that who does not hear of a write does not find out by itself.
const TTL: Duration = Duration::from_secs(60);
/// The same by a clock that is slow.
const OLDER_US: u64 = 66_000_000;
/// Bytes a second from the store, a mount.
pub(super) const BOUND_BYTES: u64 = 1 << 20;
const READERS: usize = 2;
/// One read in so many looks at the store itself before.
const PAST_ONE_IN: u32 = 6;
const READ_PAUSE: Duration = Duration::from_millis(350);
const WRITE_PAUSE: Duration = Duration::from_millis(1_500);
const CALL_PAUSE: Duration = Duration::from_millis(300);
/// Where ranges begin at the latest: every version is longer.
const START_MAX: u64 = 30_000;
const BYTES_MAX: u64 = 100_000;
const TRIED_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// One of the clients, from its first call to its last.
pub(super) async fn client(course: Arc<Course>, number: usize) {
    let client = hosts::client(course.crowd.has_standby).await;
    if number == 0 {
        mount(&client).await;
    }
    let past = past();
    let mut chance = StdRng::seed_from_u64(course.crowd.seed ^ (number as u64 + 1) << 32);
    let own: Vec<u32> = OWN.filter(|key| *key as usize % course.crowd.clients == number).collect();
    let others = (OWN.end..ALL.end).chain(s3::keys(&course)).filter(|_| number == 0);
    for key in own.iter().copied().chain(others) {
        while !write(&client, &course.calls, key, 1).await {
            sleep(TRIED_AGAIN_AFTER).await;
        }
    }
    course.progress.began.fetch_add(1, SeqCst);
    while !course.has_begun() {
        sleep(TRIED_AGAIN_AFTER).await;
    }
    let mut tasks = Vec::new();
    for key in own {
        tasks.push(forebay_runtime::spawn(writes(client.clone(), Arc::clone(&course), key, draw(&mut chance))));
    }
    for key in SHARED {
        tasks.push(forebay_runtime::spawn(meets(client.clone(), Arc::clone(&course), key, number, draw(&mut chance))));
    }
    for key in OUTSIDE.filter(|_| number == 0) {
        tasks.push(forebay_runtime::spawn(writes_past(past.clone(), Arc::clone(&course), key, draw(&mut chance))));
    }
    for _ in 0..READERS {
        let (client, past, course) = (client.clone(), past.clone(), Arc::clone(&course));
        tasks.push(forebay_runtime::spawn(reads(client, past, course, number, draw(&mut chance))));
    }
    for (place, group) in course.groups.iter().enumerate() {
        let number = (place * course.crowd.clients + number) as u32;
        let (group, nodes, door) = (Arc::clone(group), client.nodes(), Door::Remote);
        let member = Member { group, nodes, door, number, pause: course.paced(CALL_PAUSE) };
        let (course, chance) = (Arc::clone(&course), draw(&mut chance));
        tasks.push(forebay_runtime::spawn(async move { member.run(&course.calls, chance).await }));
    }
    tasks.push(forebay_runtime::spawn(outlaws::reaches_far(client.clone(), Arc::clone(&course), number, draw(&mut chance))));
    let trespassing = trespass::trespasses(client.clone(), Arc::clone(&course), number, draw(&mut chance));
    tasks.push(forebay_runtime::spawn(trespassing));
    tasks.push(forebay_runtime::spawn(outlaws::forges(Arc::clone(&course), number, draw(&mut chance))));
    if number == 0 {
        tasks.push(forebay_runtime::spawn(tree::moves(client.clone(), Arc::clone(&course), draw(&mut chance))));
        tasks.push(forebay_runtime::spawn(sets::makes(client.clone(), Arc::clone(&course), draw(&mut chance))));
    }
    if course.crowd.has_shards {
        tasks.push(forebay_runtime::spawn(records::asks(client.clone(), Arc::clone(&course), number, draw(&mut chance))));
    }
    if course.crowd.has_shards && number == 0 {
        tasks.push(forebay_runtime::spawn(records::works(client.clone(), Arc::clone(&course), draw(&mut chance))));
        tasks.push(forebay_runtime::spawn(followed::follows(client.clone(), Arc::clone(&course), draw(&mut chance))));
    }
    tasks.extend(s3::begin(&client, &course, number, &mut chance));
    if course.crowd.has_queries {
        tasks.push(forebay_runtime::spawn(queries::asks(client.clone(), Arc::clone(&course), number, draw(&mut chance))));
    }
    for task in tasks {
        // Failed by a defect, which is told as such.
        let _ = task.await;
    }
    course.progress.ended.fetch_add(1, SeqCst);
    while !course.has_ended() {
        sleep(TRIED_AGAIN_AFTER).await;
    }
    for key in ALL.chain(s3::keys(&course)) {
        // What the store has first: nobody may be told of anything older afterwards.
        read_store(&past, &course.calls, key).await;
        read(&client, &course.calls, key, 0, u64::from(u32::MAX), None).await;
    }
    if number == 0 {
        s3::looks(&course).await;
        sets::looks(&client, &course).await;
        if course.crowd.has_shards {
            records::looks(&client, &course).await;
            followed::looks(&client, &course).await;
        }
        if course.crowd.has_queries {
            queries::looks(&client, &course, draw(&mut chance)).await;
        }
        // What is not there any more needs no removing.
        let _ = timeout(GIVEN_UP_AFTER, client.nodes().delete(nodes::ROOT, true)).await;
    }
    drop(client);
    course.progress.done.fetch_add(1, SeqCst);
}

fn draw(chance: &mut StdRng) -> StdRng {
    StdRng::seed_from_u64(chance.random())
}

fn options(mount: &str) -> MountOptions {
    MountOptions {
        endpoint: Some(format!("http://{STORE_ADDRESS}")),
        anonymous: true,
        validate: if mount == MOUNTS[0] { Validate::Always } else { Validate::Ttl(TTL) },
        bandwidth: Some(BitRate::from_bytes_per_sec(BOUND_BYTES)),
        ..MountOptions::default()
    }
}

async fn mount(client: &Client) {
    for mount in MOUNTS {
        let name = mount.parse().expect("a name");
        let add = AdminRequest::MountAdd { url: format!("s3://{BUCKET}/{mount}"), options: options(mount), name };
        while let Err(error) = client.control(add.clone()).await {
            tracing::debug!(%error, "mount not added");
            sleep(TRIED_AGAIN_AFTER).await;
        }
    }
}

fn mount_of(key: u32) -> &'static str {
    MOUNTS[key as usize % MOUNTS.len()]
}

/// What readers of an object are promised by its mount.
pub(super) fn promise(key: u32) -> Promise {
    match mount_of(key) == MOUNTS[0] {
        true => Promise::InOrder,
        false if OUTSIDE.contains(&key) => Promise::Within(OLDER_US),
        false => Promise::SinceAcknowledged,
    }
}

fn path(key: u32) -> ForebayPath {
    format!("/{}/objects/{key}", mount_of(key)).parse().expect("a path")
}

async fn writes(client: Client, course: Arc<Course>, key: u32, mut chance: StdRng) {
    let mut version = 1;
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(WRITE_PAUSE)).await;
        version += 1;
        write(&client, &course.calls, key, version).await;
    }
}

/// Writes an object that others write at the same time.
async fn meets(client: Client, course: Arc<Course>, key: u32, number: usize, mut chance: StdRng) {
    while course.calls.goes_on() {
        let version = met(&course, number, &mut chance).await;
        write(&client, &course.calls, key, version).await;
    }
}

/// Waits for the next time at which all clients write; the version that is this one's then.
async fn met(course: &Course, number: usize, chance: &mut StdRng) -> u32 {
    let every_us = course.paced(MEET_EVERY).as_micros() as u64;
    let next = course.calls.recorder.now_us() / every_us + 1;
    let wait = Duration::from_micros(next * every_us - course.calls.recorder.now_us());
    sleep(wait + MEET_WITHIN.mul_f64(chance.random())).await;
    // The first one is written already, and no two clients write the same.
    next as u32 * course.crowd.clients as u32 + number as u32 + 1
}

/// Writes a version; whether that was acknowledged.
async fn write(client: &Client, calls: &Shared, key: u32, version: u32) -> bool {
    let begin_us = calls.recorder.now_us();
    let written = answered(objects::put(client, &path(key), contents::bytes(key, version))).await;
    let is_written = written.is_ok();
    calls.recorder.add(begin_us, Door::Remote, What::Write { key, version, etag: written.clone().ok() }, written.err());
    is_written
}

async fn reads(client: Client, past: Past, course: Arc<Course>, number: usize, mut chance: StdRng) {
    let mut looks = epochs::Looks::of(number);
    while course.calls.goes_on() {
        looks.look(&client, &course);
        let (key, start) = (chance.random_range(ALL), chance.random_range(0..START_MAX));
        if chance.random_ratio(1, PAST_ONE_IN) {
            read_store(&past, &course.calls, key).await;
        }
        let (start, bytes) = match chance.random_ratio(1, 8) {
            true => (0, u64::from(u32::MAX)),
            false => (start, chance.random_range(RANGE_BYTES_MIN..BYTES_MAX)),
        };
        let waits = chance.random_ratio(1, 4).then(|| Duration::from_millis(chance.random_range(0..200)));
        read(&client, &course.calls, key, start, bytes, waits).await;
        pause(&mut chance, course.paced(READ_PAUSE)).await;
    }
}

async fn read(client: &Client, calls: &Shared, key: u32, start: u64, bytes: u64, waits: Option<Duration>) {
    let begin_us = calls.recorder.now_us();
    let read = answered(objects::get(client, &path(key), start, bytes, waits)).await;
    calls.recorder.add_read(begin_us, Door::Remote, (key, start, bytes), read);
}

/// The way of a client to the store past Forebay, by mount.
type Past = [Storage; MOUNTS.len()];

fn past() -> Past {
    MOUNTS.map(|name| {
        let options = MountOptions { bandwidth: None, ..options(name) };
        let url = format!("s3://{BUCKET}/{name}");
        let mount = Mount { id: forebay_types::MountId(1), name: name.parse().expect("a name"), url, options };
        Storage::open(&mount, StorageSettings::default()).expect("the store wants no credentials")
    })
}

/// Writes an object past Forebay, which is told nothing of it.
async fn writes_past(past: Past, course: Arc<Course>, key: u32, mut chance: StdRng) {
    let mut version = 1;
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(WRITE_PAUSE)).await;
        version += 1;
        let begin_us = course.calls.recorder.now_us();
        let written = answered(put_past(&past, key, contents::bytes(key, version))).await;
        let write = What::Write { key, version, etag: written.clone().ok() };
        course.calls.recorder.add(begin_us, Door::Store, write, written.err());
    }
}

async fn put_past(past: &Past, key: u32, body: Bytes) -> Result<String> {
    let storage = &past[key as usize % MOUNTS.len()];
    let info = storage.put(&Key::new(format!("objects/{key}"))?, vec![body], PutCondition::Any).await?;
    Ok(objects::tag(info.version.tag.as_str()))
}

/// Reads all of an object past Forebay.
async fn read_store(past: &Past, calls: &Shared, key: u32) {
    let (storage, all) = (&past[key as usize % MOUNTS.len()], u64::from(u32::MAX));
    let begin_us = calls.recorder.now_us();
    let read = async {
        let key = Key::new(format!("objects/{key}"))?;
        let body = storage.get(Get { key: &key, range: GetRange::All, if_match: None, class: Class::Demand }).await?;
        let etag = objects::tag(body.info.version.tag.as_str());
        Ok((body.collect().await?, etag))
    };
    let read = read.await.map_err(|error: Error| of_client(&error));
    calls.recorder.add_read(begin_us, Door::Store, (key, 0, all), read);
}
