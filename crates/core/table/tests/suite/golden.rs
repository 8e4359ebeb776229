//! Files of version 1 that every later version must read, and that this one must write.

use std::path::PathBuf;

use bytes::Bytes;
use forebay_table::{Grouping, Layout};

use crate::round_trip::{read, write};
use crate::samples::batch;

fn check(name: &str, grouping: Grouping) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let batches = [batch(2018, 21), batch(2018, 12)];
    let written = write(&batches, grouping, 20);
    if std::env::var_os("FOREBAY_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = Bytes::from(std::fs::read(&path).unwrap());
    assert_eq!(read(&golden, 100), arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap());
    assert!(golden == written, "{name}: the bytes have changed; raise the version and keep the old file");
}

#[test]
fn columns_of_version_1() {
    check("columns-1.albis", Grouping::columns());
}

#[test]
fn aligned_rows_of_version_1() {
    check("aligned-1.albis", Grouping::columns().group(["i64", "utf8", "nested", "floats"]).group(["*"]));
}

#[test]
fn packed_rows_of_version_1() {
    check("packed-1.albis", Grouping::rows().layout(Layout::Packed));
}
