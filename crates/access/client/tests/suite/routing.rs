//! Where reads go: by the routing table, by queues, and by rendezvous hashing where the table says nothing.

use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_placement::rank;
use forebay_protocol::{Route, RoutesDelta};
use forebay_testbed::until;
use forebay_types::{ObjectVersion, OperationId, RouteKey, WorkerId};

use crate::scripted::{Coordinator, MOUNT, Mood, Worker, object};

const OPERATION: OperationId = OperationId(79);

/// Three workers with the same object, in the order of rendezvous hashing.
async fn three() -> (Vec<Worker>, Coordinator, ObjectVersion) {
    three_with(50_000).await
}

async fn three_with(bytes: usize) -> (Vec<Worker>, Coordinator, ObjectVersion) {
    let objects = [object("x", bytes)];
    let mut workers = Vec::new();
    for id in 1..=3 {
        workers.push(Worker::start(id, &objects).await);
    }
    let order = rank(route(), &[WorkerId(1), WorkerId(2), WorkerId(3)]);
    workers.sort_by_key(|worker| order.iter().position(|id| *id == worker.info.id));
    let coordinator = Coordinator::start(&workers.iter().collect::<Vec<_>>()).await;
    (workers, coordinator, objects[0].0.version.clone())
}

fn route() -> RouteKey {
    RouteKey::of(MOUNT, &object("x", 1).0.version.key, 0)
}

/// From now on the table says this.
fn say(coordinator: &Coordinator, version: u64, holders: &[(&Worker, u32)]) {
    let holders = holders.iter().map(|(worker, weight)| (worker.info.id, *weight)).collect();
    let routes = vec![Route { key: route(), holders }];
    *coordinator.routes.lock() = RoutesDelta { version: (1 << 32) + version, base: 0, routes };
}

async fn client(coordinator: &Coordinator) -> Client {
    coordinator.client(|settings| settings.in_place = false).await
}

async fn read(client: &Client, version: &ObjectVersion, times: usize) {
    for _ in 0..times {
        client.read(OPERATION, version, 0..1000).await.unwrap();
    }
}

fn reads(workers: &[Worker]) -> Vec<usize> {
    workers.iter().map(Worker::reads).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_goes_before_hashing_and_its_weights_hold() {
    let (workers, coordinator, version) = three().await;
    say(&coordinator, 2, &[(&workers[1], 80), (&workers[2], 20)]);
    let client = client(&coordinator).await;
    read(&client, &version, 400).await;
    let reads = reads(&workers);
    assert_eq!(reads[0], 0, "its home is not in the table");
    assert!((270..370).contains(&reads[1]), "about 320 of 400: {reads:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_taken_back_sends_reads_home() {
    let (workers, coordinator, version) = three().await;
    say(&coordinator, 2, &[(&workers[2], 1)]);
    let client = client(&coordinator).await;
    read(&client, &version, 3).await;
    *coordinator.routes.lock() = RoutesDelta { version: (1 << 32) + 3, base: 0, routes: vec![] };
    client.refresh_view().await.unwrap();
    read(&client, &version, 3).await;
    assert_eq!(reads(&workers), [3, 0, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_holder_loses_traffic_within_a_second() {
    let (workers, coordinator, version) = three().await;
    say(&coordinator, 2, &[(&workers[1], 50), (&workers[2], 50)]);
    let client = client(&coordinator).await;
    read(&client, &version, 20).await;
    workers[1].set(Mood::Slow(Duration::from_millis(200)));
    let before = reads(&workers);
    let began = Instant::now();
    let readers = (0..8).map(|_| {
        let (client, version) = (client.clone(), version.clone());
        tokio::spawn(async move {
            while began.elapsed() < Duration::from_secs(1) {
                read(&client, &version, 1).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    });
    futures::future::join_all(readers).await.into_iter().for_each(|reader| reader.unwrap());
    let after = reads(&workers);
    let (slow, well) = (after[1] - before[1], after[2] - before[2]);
    assert!(well > 10 * slow, "{slow} went to the slow one, {well} to the other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_a_long_read_both_are_asked_for_their_queues() {
    const ROUNDS: usize = 20;
    let (workers, coordinator, version) = three_with(600_000).await;
    say(&coordinator, 2, &[(&workers[1], 50), (&workers[2], 50)]);
    let client = client(&coordinator).await;
    read(&client, &version, 40).await;
    let mut wrong = 0;
    for round in 0..ROUNDS {
        // What was true a moment ago is the opposite of what is true now.
        let (busy, idle) = (&workers[1 + round % 2], &workers[2 - round % 2]);
        busy.shared.hint.lock().queue = 50;
        idle.shared.hint.lock().queue = 0;
        tokio::time::sleep(Duration::from_millis(2)).await;
        let before = busy.reads();
        client.read(OPERATION, &version, 0..600_000).await.unwrap();
        wrong += busy.reads() - before;
    }
    // On a busy machine an answer may come too late.
    assert!(wrong <= ROUNDS / 4, "{wrong} of {ROUNDS} went to the longer queue");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_hangs_gets_no_more_than_the_reads_that_found_out() {
    let (workers, coordinator, version) = three().await;
    say(&coordinator, 2, &[(&workers[1], 50), (&workers[2], 50)]);
    let client = client(&coordinator).await;
    workers[1].set(Mood::Hangs);
    let stuck = workers[1].reads();
    let hanging: Vec<_> = (0..8)
        .map(|_| {
            let (client, version) = (client.clone(), version.clone());
            // One that gets past the holder that hangs is enough, however many find out at once.
            tokio::spawn(async move { read(&client, &version, 150).await })
        })
        .collect();
    until("the other holder serves", || workers[2].reads() > 100).await;
    assert!(workers[1].reads() - stuck <= 8, "{} hang", workers[1].reads() - stuck);
    hanging.iter().for_each(|task| task.abort());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_is_gone_is_replaced_by_any_other_and_the_coordinator_is_asked() {
    let (mut workers, coordinator, version) = three().await;
    say(&coordinator, 2, &[(&workers[1], 1), (&workers[2], 99)]);
    let client = client(&coordinator).await;
    read(&client, &version, 1).await;
    // Lost, as far as the view says; the table of before still names it.
    let gone = workers.remove(2);
    {
        let mut view = coordinator.view.lock();
        view.workers.retain(|worker| worker.id != gone.info.id);
        view.version += 1;
    }
    client.refresh_view().await.unwrap();
    let before = gone.reads();
    read(&client, &version, 20).await;
    assert_eq!((workers[0].reads(), gone.reads() - before), (0, 0));
    say(&coordinator, 3, &[(&workers[0], 1)]);
    until("the new table is followed", || {
        let (client, version) = (client.clone(), version.clone());
        tokio::spawn(async move { read(&client, &version, 1).await });
        workers[0].reads() > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_knows_a_newer_table_makes_the_client_ask() {
    let (workers, coordinator, version) = three().await;
    coordinator.view.lock().poll = Some(Duration::from_secs(3));
    let client = client(&coordinator).await;
    read(&client, &version, 1).await;
    say(&coordinator, 2, &[(&workers[2], 1)]);
    workers[0].shared.hint.lock().routes = (1 << 32) + 2;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let began = Instant::now();
    until("the new table is followed", || {
        let (client, version) = (client.clone(), version.clone());
        tokio::spawn(async move { read(&client, &version, 1).await });
        workers[2].reads() > 0
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_this_host_is_read_in_place_first() {
    let (workers, coordinator, version) = three().await;
    // The others of the table are on another host.
    for worker in &mut coordinator.view.lock().workers {
        if worker.id != workers[2].info.id {
            worker.host = forebay_types::HostId("elsewhere".into());
        }
    }
    say(&coordinator, 2, &[(&workers[1], 99), (&workers[2], 1)]);
    let client = coordinator.client(|settings| settings.pins_max = 0).await;
    read(&client, &version, 20).await;
    assert_eq!(reads(&workers), [0, 0, 20]);
    assert_eq!(client.counters().reads_in_place, 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plan_brought_to_one_holder_was_read_from_another() {
    const COUNT: usize = 40;
    let objects: Vec<_> = (0..COUNT).map(|number| object(&format!("x/{number}"), 50_000)).collect();
    let workers = [Worker::start(1, &objects).await, Worker::start(2, &objects).await];
    let coordinator = Coordinator::start(&[&workers[0], &workers[1]]).await;
    let holders: Vec<_> = workers.iter().map(|worker| (worker.info.id, 50)).collect();
    let key = |info: &forebay_types::ObjectInfo| RouteKey::of(MOUNT, &info.version.key, 0);
    let routes = objects.iter().map(|(info, _)| Route { key: key(info), holders: holders.clone() }).collect();
    *coordinator.routes.lock() = RoutesDelta { version: (1 << 32) + 2, base: 0, routes };
    let client = client(&coordinator).await;
    let whole = 0..50_000;
    let plan = objects.iter().map(|(info, _)| (info.version.clone(), vec![whole.clone()])).collect();
    let _ahead = client.prefetch(OPERATION, plan);
    let brought = || workers.iter().map(|worker| worker.shared.brought.lock().clone()).collect::<Vec<_>>();
    until("all of it is brought", || brought().iter().map(|keys| keys.len()).sum::<usize>() == COUNT).await;
    for (info, _) in &objects {
        client.read(OPERATION, &info.version, 0..1000).await.unwrap();
    }
    let read: Vec<_> = workers.iter().map(|worker| worker.shared.read_of.lock().clone()).collect();
    let elsewhere: usize = read.iter().zip(brought()).map(|(read, brought)| read.difference(&brought).count()).sum();
    // Of one that is late for a moment another one is asked beside.
    assert!(elsewhere <= COUNT / 10, "{elsewhere} of {COUNT} objects were read where they were not brought");
    assert!(read.iter().all(|keys| keys.len() >= COUNT / 8), "and at both, as the table says");
}
