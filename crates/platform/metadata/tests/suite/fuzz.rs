//! Rows that somebody else wrote into the database: each is read or refused.

use forebay_fuzz::{run, shape};
use forebay_metadata::Metadata;
use forebay_types::{ErrorKind, Grant, MountOptions, Role, TokenKeys, Verifier};
use sqlx::Connection;

use crate::conformance::{key, name};

/// Columns that hold what this program has written, by their tables.
const COLUMNS: [(&str, &str); 8] = [
    ("mounts", "name"),
    ("mounts", "url"),
    ("mounts", "options"),
    ("tokens", "id"),
    ("tokens", "rights"),
    ("tokens", "created"),
    ("tokens", "stored_key"),
    ("pins", "prefix"),
];

#[test]
fn fuzz_a_database() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/metadata.db", folder.path().display());
    let (metadata, mut beside) = runtime.block_on(async {
        let metadata = Metadata::open(&url).await.unwrap();
        metadata.add_mount(&name("lake"), "s3://lake/a", &MountOptions::default()).await.unwrap();
        let lake = metadata.mounts().await.unwrap()[0].id;
        metadata.add_pin(lake, &key("a/b")).await.unwrap();
        let grant = Grant::everywhere(Role::Read);
        let keys = TokenKeys { stored: [1; 32], server: [2; 32] };
        metadata.add_token(&Verifier { id: "etl.1".into(), grant, created: 7, keys }).await.unwrap();
        (metadata, sqlx::SqliteConnection::connect(&url).await.unwrap())
    });
    let options = serde_json::to_vec(&MountOptions::default()).unwrap();
    let rights = serde_json::to_vec(&Grant::everywhere(Role::Read)).unwrap();
    let values = [b"lake".to_vec(), b"s3://lake/a".to_vec(), options, rights, vec![1; 32], b"7".to_vec(), b"etl.1".to_vec()];
    // The first byte says which column, and as what it is written.
    let seeds = (0..COLUMNS.len() * 3).flat_map(|at| values.iter().map(move |value| [&[at as u8], value.as_slice()].concat()));
    run(
        "rows of a database",
        seeds.collect(),
        |_| (),
        |input| {
            let Some((&which, value)) = input.split_first() else { return String::new() };
            let (table, column) = COLUMNS[usize::from(which) % COLUMNS.len()];
            runtime.block_on(async {
                let mut changing = beside.begin().await.unwrap();
                let statement = sqlx::AssertSqlSafe(format!("UPDATE {table} SET {column} = $1"));
                let query = sqlx::query(statement);
                let query = match usize::from(which) / COLUMNS.len() % 3 {
                    0 => query.bind(value),
                    1 => query.bind(String::from_utf8_lossy(value).into_owned()),
                    _ => query.bind(value.iter().fold(0_i64, |number, byte| number.wrapping_mul(256) + i64::from(*byte))),
                };
                if query.execute(&mut *changing).await.is_err() {
                    return "refused by the database".into();
                }
                changing.commit().await.unwrap();
                let read = [
                    metadata.mounts().await.map(|mounts| mounts.len()),
                    metadata.tokens().await.map(|tokens| tokens.len()),
                    metadata.pins().await.map(|pins| pins.len()),
                ];
                let edges = read.map(|read| match read {
                    Ok(count) => count.to_string(),
                    Err(error) => {
                        assert!(
                            matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Corrupt | ErrorKind::Internal),
                            "{error:?}"
                        );
                        shape(error.message())
                    }
                });
                format!("{table} {column} {}", edges.join(", "))
            })
        },
    );
}
