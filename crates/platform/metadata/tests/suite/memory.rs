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
