//! In memory.

use forebay_metadata::{Memory, Metadata};
use forebay_types::ErrorKind;

use crate::conformance;

macro_rules! conforms {
    ($($check:ident),*) => {$(
        #[tokio::test]
        async fn $check() {
            let memory = Memory::new();
            conformance::$check(memory.url()).await;
        }
    )*};
}

conforms!(
    mounts_are_kept,
    mount_ids_are_never_reused,
    pins_are_byte_exact,
    tables_are_kept,
    checkpoints_replace_the_one_before,
    many_open_and_write_at_once
);

#[tokio::test]
async fn only_one_leads() {
    let memory = Memory::new();
    conformance::only_one_leads(memory.url(), ErrorKind::Retry).await;
}

#[tokio::test]
async fn what_was_dropped_is_no_database() {
    let memory = Memory::new();
    let url = memory.url().to_owned();
    drop(memory);
    assert_eq!(Metadata::open(&url).await.map(|_| ()).unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn one_that_is_away_answers_nobody_and_has_what_it_had() {
    let memory = Memory::new();
    let metadata = Metadata::open(memory.url()).await.unwrap();
    metadata.put_checkpoint("members", 7, b"all").await.unwrap();
    memory.set_away(true);
    assert_eq!(metadata.put_checkpoint("members", 8, b"none").await.unwrap_err().kind(), ErrorKind::Retry);
    assert_eq!(metadata.acquire_epoch().await.unwrap_err().kind(), ErrorKind::Retry);
    memory.set_away(false);
    assert_eq!(metadata.checkpoint("members").await.unwrap(), Some((7, b"all".to_vec())));
}
