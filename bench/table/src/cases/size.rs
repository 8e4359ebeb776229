//! Bar of size: what each format adds to the values' own bytes.

use forebay_types::Result;

use crate::files::Files;
use crate::peers::Peers;
use crate::report::Report;
use crate::store_sales::value_bytes;

/// Bytes of the files beside the values' bytes, and the others' beside ours.
pub fn size(files: &Files, peers: &Peers, report: &Report) -> Result<()> {
    let values = value_bytes(&files.batches);
    let columns = files.columns()?.len() as u64;
    report.bytes("size, column store", "the values' bytes", columns, values, Some(1.02));
    report.bytes("size, row store", "the values' bytes", files.rows()?.len() as u64, values, Some(1.08));
    report.bytes("size, column store", "arrow ipc", columns, files.ipc()?.len() as u64, None);
    for codec in ["none", "snappy", "zstd"] {
        report.bytes("size, column store", &format!("parquet {codec}"), columns, files.parquet(codec)?.len() as u64, None);
    }
    for peer in peers.run("size", files.dir(), &[])? {
        report.bytes("size, column store", &peer.peer, columns, peer.bytes, None);
    }
    Ok(())
}
