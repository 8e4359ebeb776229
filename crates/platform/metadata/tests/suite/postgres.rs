//! On PostgreSQL.

use std::time::{Duration, Instant};

use forebay_metadata::Metadata;
use forebay_testing::{POSTGRES_PASSWORD as PASSWORD, Postgres};
use forebay_types::{ErrorKind, MountOptions};

use crate::conformance::{self, execute, name};

/// One server for all checks, each with a database of its own.
#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    let server = Postgres::with_password();
    let database = |name: &str| server.database(name).unwrap();
    conformance::mounts_are_kept(&database("mounts")).await;
    conformance::mount_ids_are_never_reused(&database("ids")).await;
    conformance::a_restored_copy_gives_no_mount_s_number_again(&database("restored")).await;
    conformance::pins_are_byte_exact(&database("pins")).await;
    conformance::tables_are_kept(&database("tables")).await;
    conformance::checkpoints_replace_the_one_before(&database("checkpoints")).await;
    conformance::epochs_grow_and_fence(&database("epochs")).await;
    conformance::only_one_leads(&database("leader"), ErrorKind::Retry).await;
    conformance::a_newer_schema_is_refused_untouched(&database("newer")).await;
    conformance::many_open_and_write_at_once(&database("many")).await;

    refusals_name_the_host_and_never_the_password(&server).await;
}

/// A server of its own, since it crashes.
#[tokio::test(flavor = "multi_thread")]
async fn leadership_ends_with_the_session() {
    let server = Postgres::with_password();
    let database = |name: &str| server.database(name).unwrap();
    a_leader_whose_session_ends_is_told(&database("terminated")).await;
    a_server_that_goes_away_is_a_retry_until_it_is_back(&server, &database("crashed")).await;
}

async fn refused(url: &str) -> (ErrorKind, String) {
    let error = Metadata::open(url).await.map(|_| ()).expect_err("is refused");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains(PASSWORD) && !text.contains("wr0ng"), "{text}");
    }
    assert!(error.message().contains("127.0.0.1"), "{error}");
    (error.kind(), error.message().to_string())
}

async fn refusals_name_the_host_and_never_the_password(server: &Postgres) {
    let (kind, message) = refused(&server.url_of("absent")).await;
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(message.contains("createdb"), "{message}");

    let (kind, message) = refused(&server.url_of("mounts").replace(PASSWORD, "wr0ng")).await;
    assert_eq!(kind, ErrorKind::Denied);
    assert!(message.contains("bay@127.0.0.1"), "{message}");

    server.createdb(&["-E", "SQL_ASCII", "ascii"]).unwrap();
    let (kind, message) = refused(&server.url_of("ascii")).await;
    assert_eq!(kind, ErrorKind::Invalid);
    assert!(message.contains("SQL_ASCII") && message.contains("UTF8"), "{message}");

    let started = Instant::now();
    let (kind, message) = refused(&format!("postgres://bay:{PASSWORD}@127.0.0.1:1/mounts")).await;
    assert_eq!(kind, ErrorKind::Retry);
    assert!(message.contains("127.0.0.1:1/mounts") && message.contains("is it running"), "{message}");
    assert!(started.elapsed() < Duration::from_secs(6));
}

async fn a_leader_whose_session_ends_is_told(url: &str) {
    let leader = Metadata::open(url).await.unwrap();
    let standby = Metadata::open(url).await.unwrap();
    let epoch = leader.acquire_epoch().await.unwrap();
    execute(
        url,
        "SELECT CASE WHEN pg_terminate_backend(pid) THEN 1 ELSE 0 END FROM pg_locks \
         WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .await;
    tokio::time::timeout(Duration::from_secs(5), leader.leadership_lost()).await.expect("is told");
    assert!(standby.acquire_epoch().await.unwrap() > epoch);
    let fenced = leader.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap_err();
    assert_eq!(fenced.kind(), ErrorKind::Closed, "{fenced}");
    standby.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap();
}

async fn a_server_that_goes_away_is_a_retry_until_it_is_back(server: &Postgres, url: &str) {
    let metadata = Metadata::open(url).await.unwrap();
    let bystander = Metadata::open(url).await.unwrap();
    let epoch = metadata.acquire_epoch().await.unwrap();
    bystander.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap();

    server.crash().unwrap();
    tokio::time::timeout(Duration::from_secs(6), metadata.leadership_lost()).await.expect("is told");
    let error = bystander.mounts().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
    assert!(error.message().contains(&bystander.shown()) && !error.message().contains(PASSWORD), "{error}");

    server.resume().unwrap();
    let mounts = loop {
        match bystander.mounts().await {
            Ok(mounts) => break mounts,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Retry, "{error}"),
        }
    };
    assert_eq!(mounts.len(), 1);
    assert!(Metadata::open(url).await.unwrap().acquire_epoch().await.unwrap() > epoch);
}
