//! A cluster with a gateway as a process of its own, so that its CPU time is not that of who asks.

use forebay_bench_harness::until_input_ends;

use crate::rig::Rig;

/// Makes one object of so many bytes, says where it listens and the object's path, and serves until its input ends.
pub async fn serve(bytes: usize) {
    let rig = Rig::start().await;
    rig.s3.set_bandwidth(None);
    let paths = rig.store("served", 1, bytes);
    println!("{} {}", rig.address(), paths[0]);
    until_input_ends().await;
}
