//! What every database must do. Each check gets the URL of an empty database.

use std::collections::HashSet;
use std::time::Duration;

use forebay_metadata::{Metadata, SCHEMA_VERSION, StoredTable};
use forebay_types::{BitRate, ByteSize, ErrorKind, HotForm, Key, MountId, MountName, MountOptions, Validate};
use sqlx::{AssertSqlSafe, Connection, Row};

pub fn name(name: &str) -> MountName {
    name.parse().expect("a legal name")
}

pub fn key(key: &str) -> Key {
    Key::new(key).expect("a legal key")
}

/// Runs one statement beside Forebay.
pub async fn execute(url: &str, statement: &str) {
    let mut connection = sqlx::AnyConnection::connect(url).await.expect("connects");
    sqlx::raw_sql(AssertSqlSafe(statement.to_string())).execute(&mut connection).await.expect("runs");
    connection.close().await.expect("closes");
}

pub async fn mounts_are_kept(url: &str) {
    let options = MountOptions {
        endpoint: Some("http://127.0.0.1:9000".into()),
        region: Some("eu-central-1".into()),
        profile: Some("prod".into()),
        anonymous: true,
        virtual_host: true,
        read_only: true,
        validate: Validate::Ttl(Duration::from_millis(1500)),
        bandwidth: Some(BitRate::from_bytes_per_sec(125_000_001)),
        burst: Some(ByteSize(3 << 20)),
        discover: Some(Duration::from_secs(30)),
        eager: true,
        replicas: Some(2),
        hot_form: HotForm::Table,
        young: Some("2 for 7d".parse().unwrap()),
    };
    let metadata = Metadata::open(url).await.unwrap();
    assert_eq!(metadata.mounts().await.unwrap(), []);
    let lake = metadata.add_mount(&name("lake"), "s3://bücket/a b", &options).await.unwrap();
    let nas = metadata.add_mount(&name("nas"), "file:///mnt/nas", &MountOptions::default()).await.unwrap();
    assert!(MountId::TEMPORARY < lake.id && lake.id < nas.id, "{lake:?}, {nas:?}");

    let taken = metadata.add_mount(&name("lake"), "file:///other", &options).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    assert!(taken.message().contains("lake"), "{taken}");
    metadata.close().await;

    let metadata = Metadata::open(url).await.unwrap();
    assert_eq!(metadata.mounts().await.unwrap(), [lake.clone(), nas.clone()]);
    let changed = MountOptions { read_only: false, ..options };
    let set = metadata.set_mount_options(&name("lake"), &changed).await.unwrap();
    assert_eq!((set.id, &set.options), (lake.id, &changed));
    assert_eq!(metadata.mounts().await.unwrap(), [set.clone(), nas.clone()]);
    assert_eq!(metadata.remove_mount(&name("lake")).await.unwrap(), set);
    assert_eq!(metadata.mounts().await.unwrap(), [nas]);
    for missing in [metadata.set_mount_options(&name("lake"), &changed).await, metadata.remove_mount(&name("lake")).await] {
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    }
    metadata.close().await;
    assert_eq!(metadata.mounts().await.unwrap_err().kind(), ErrorKind::Closed);
}

pub async fn mount_ids_are_never_reused(url: &str) {
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let metadata = Metadata::open(url).await.unwrap();
        for _ in 0..2 {
            let mount = metadata.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap();
            assert!(seen.insert(mount.id), "{:?} was used before", mount.id);
            metadata.remove_mount(&name("lake")).await.unwrap();
        }
        metadata.close().await;
    }
}

pub async fn a_restored_copy_gives_no_mount_s_number_again(url: &str) {
    let mut seen = HashSet::new();
    for _ in 0..3 {
        // As the first copy of the database has it.
        let metadata = Metadata::open(url).await.unwrap();
        execute(url, "UPDATE counters SET value = 0 WHERE name = 'mount_id'").await;
        let mount = metadata.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap();
        assert!(seen.insert(mount.id), "{:?} was used before", mount.id);
        metadata.remove_mount(&name("lake")).await.unwrap();
        metadata.close().await;
    }
}

pub async fn pins_are_byte_exact(url: &str) {
    let metadata = Metadata::open(url).await.unwrap();
    let lake = metadata.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap().id;
    let nas = metadata.add_mount(&name("nas"), "file:///b", &MountOptions::default()).await.unwrap().id;
    let longest = "x".repeat(Key::BYTES_MAX);
    let prefixes = ["", "A", "a", "a ", "a/", "a//", "a%2F", "a'\"\\", "ä", "a\u{308}", longest.as_str()];
    for prefix in prefixes {
        metadata.add_pin(lake, &key(prefix)).await.unwrap();
        metadata.add_pin(lake, &key(prefix)).await.unwrap();
    }
    metadata.add_pin(nas, &key("a")).await.unwrap();

    let mut expected: Vec<_> = prefixes.iter().map(|prefix| (lake, key(prefix))).collect();
    expected.sort();
    expected.push((nas, key("a")));
    assert_eq!(metadata.pins().await.unwrap(), expected);

    assert_eq!(metadata.remove_pin(nas, &key("A")).await.unwrap_err().kind(), ErrorKind::NotFound);
    metadata.remove_pin(lake, &key("a")).await.unwrap();
    assert_eq!(metadata.remove_pin(lake, &key("a")).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(metadata.add_pin(MountId(99), &key("a")).await.unwrap_err().kind(), ErrorKind::NotFound);
    metadata.remove_mount(&name("lake")).await.unwrap();
    assert_eq!(metadata.pins().await.unwrap(), [(nas, key("a"))], "a mount's pins go with it");
    metadata.close().await;
}

pub async fn tables_are_kept(url: &str) {
    let metadata = Metadata::open(url).await.unwrap();
    metadata.put_table("flights", "CREATE EXTERNAL TABLE flights ...", false).await.unwrap();
    metadata.put_table("Flüge", "CREATE ... 'it''s'", true).await.unwrap();
    let taken = metadata.put_table("flights", "other", false).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    metadata.put_table("flights", "CREATE OR REPLACE", true).await.unwrap();
    assert_eq!(metadata.put_table("nul", "a\0b", true).await.unwrap_err().kind(), ErrorKind::Invalid);
    let table = |name: &str, statement: &str| StoredTable { name: name.into(), statement: statement.into() };
    let kept = [table("Flüge", "CREATE ... 'it''s'"), table("flights", "CREATE OR REPLACE")];
    assert_eq!(metadata.tables().await.unwrap(), kept);
    metadata.remove_table("flights").await.unwrap();
    assert_eq!(metadata.remove_table("flights").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(metadata.tables().await.unwrap(), kept[..1]);
    metadata.close().await;
}

pub async fn checkpoints_replace_the_one_before(url: &str) {
    let metadata = Metadata::open(url).await.unwrap();
    assert_eq!(metadata.checkpoint("popularity").await.unwrap(), None);
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    metadata.put_checkpoint("popularity", 1, b"").await.unwrap();
    assert_eq!(metadata.checkpoint("popularity").await.unwrap(), Some((1, vec![])));
    metadata.put_checkpoint("popularity", 2, &bytes).await.unwrap();
    metadata.put_checkpoint("plan", 7, b"plan").await.unwrap();
    assert_eq!(metadata.checkpoint("popularity").await.unwrap(), Some((2, bytes)));
    assert_eq!(metadata.checkpoint("plan").await.unwrap(), Some((7, b"plan".to_vec())));
    metadata.close().await;
}

pub async fn epochs_grow_and_fence(url: &str) {
    let mut last = 0;
    for _ in 0..3 {
        let metadata = Metadata::open(url).await.unwrap();
        let epoch = metadata.acquire_epoch().await.unwrap();
        assert!(epoch > last && epoch < 1 << 31, "{epoch} after {last}");
        last = epoch;
        metadata.close().await;
    }
    // As an older copy of the database has it: who has seen the last one still listens.
    execute(url, "UPDATE counters SET value = 7 WHERE name = 'epoch'").await;
    let metadata = Metadata::open(url).await.unwrap();
    let restored = metadata.acquire_epoch().await.unwrap();
    // Three in one second are ahead of the clock, by as much as they were faster than it.
    assert!(restored + 3 > last, "{restored} after {last}");
    metadata.close().await;
    // With a clock that is far behind they count on.
    execute(url, "UPDATE counters SET value = 4000000000 WHERE name = 'epoch'").await;
    let metadata = Metadata::open(url).await.unwrap();
    assert_eq!(metadata.acquire_epoch().await.unwrap(), 4_000_000_001);
    metadata.add_mount(&name("lake"), "file:///a", &MountOptions::default()).await.unwrap();
    // Another coordinator takes over behind its back.
    execute(url, "UPDATE counters SET value = value + 1 WHERE name = 'epoch'").await;
    let fenced = metadata.add_mount(&name("nas"), "file:///b", &MountOptions::default()).await.unwrap_err();
    assert_eq!(fenced.kind(), ErrorKind::Closed);
    assert!(fenced.message().contains("epoch 4000000001 is past"), "{fenced}");
    for error in [
        metadata.remove_mount(&name("lake")).await.map(|_| ()),
        metadata.add_pin(MountId(1), &key("a")).await,
        metadata.put_table("t", "s", true).await,
        metadata.put_checkpoint("plan", 1, b"x").await,
    ] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(metadata.mounts().await.unwrap().len(), 1, "reads go on, and nothing was written");
    metadata.close().await;
}

pub async fn only_one_leads(url: &str, refused: ErrorKind) {
    let first = Metadata::open(url).await.unwrap();
    let second = Metadata::open(url).await.unwrap();
    let epoch = first.acquire_epoch().await.unwrap();
    for _ in 0..2 {
        let error = second.acquire_epoch().await.unwrap_err();
        assert_eq!(error.kind(), refused, "{error}");
    }
    let lost = tokio::time::timeout(Duration::from_millis(1500), first.leadership_lost()).await;
    assert!(lost.is_err(), "leadership is not lost while it is held");
    first.close().await;
    let later = second.acquire_epoch().await.unwrap();
    assert!(later > epoch, "a lock that was given up is free at once");

    // Dropped without closing, as when a task panics.
    drop(second);
    let third = Metadata::open(url).await.unwrap();
    let acquired = async {
        loop {
            match third.acquire_epoch().await {
                Ok(epoch) => return epoch,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(5), acquired).await.unwrap() > later);
    third.close().await;
}

pub async fn a_newer_schema_is_refused_untouched(url: &str) {
    Metadata::open(url).await.unwrap().close().await;
    let newer = SCHEMA_VERSION + 41;
    execute(url, &format!("UPDATE schema_version SET version = {newer}")).await;
    let error = Metadata::open(url).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains(&newer.to_string()) && error.message().contains("newer forebay"), "{error}");
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
    let row = sqlx::query("SELECT version FROM schema_version").fetch_one(&mut connection).await.unwrap();
    assert_eq!(row.get::<i64, _>(0) as u64, newer);
    connection.close().await.unwrap();
}

pub async fn many_open_and_write_at_once(url: &str) {
    let opened: Vec<_> = (0..6).map(|_| tokio::spawn(open(url.to_string()))).collect();
    let mut metadata = Vec::new();
    for task in opened {
        metadata.push(task.await.unwrap());
    }
    let adding: Vec<_> = (0..24)
        .map(|i| {
            let metadata = metadata[i % metadata.len()].clone();
            // Every name is wanted by two.
            let name = name(&format!("mount-{}", i / 2));
            tokio::spawn(async move { metadata.add_mount(&name, "file:///a", &MountOptions::default()).await })
        })
        .collect();
    let (mut ids, mut refused) = (HashSet::new(), 0);
    for task in adding {
        match task.await.unwrap() {
            Ok(mount) => assert!(ids.insert(mount.id)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!((ids.len(), refused), (12, 12));
    for metadata in metadata {
        metadata.close().await;
    }
}

async fn open(url: String) -> Metadata {
    Metadata::open(&url).await.expect("opens while others do")
}
