//! What a store that others wrote passes, the gateway over it passes too.

use forebay_demo::{ACCESS_KEY, SECRET_KEY};
use forebay_testing::SecondServer;

use super::clients::{command, run, script, tool};
use crate::rig::cluster::{Cluster, gateway_settings};

/// Runs the checks; gives what failed and all that were run.
async fn check(endpoint: &str, bucket: &str, key: Option<(&str, &str)>) -> (Vec<String>, Vec<String>) {
    let mut command = command(tool("python"));
    command.arg(script("conformance.py")).arg(endpoint).arg(bucket);
    if let Some((id, secret)) = key {
        command.env("AWS_ACCESS_KEY_ID", id).env("AWS_SECRET_ACCESS_KEY", secret);
    }
    let text = run(command).await;
    let (mut failed, mut all) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("pass", name)) => all.push(name.to_string()),
            Some(("fail", rest)) => {
                failed.push(rest.to_string());
                all.push(name(rest).to_string());
            }
            _ => {}
        }
    }
    assert!(all.len() > 60, "{text}");
    (failed, all)
}

fn name(failure: &str) -> &str {
    failure.split(':').next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_store_passes_the_gateway_passes() {
    let store = SecondServer::start(&["direct", "behind", "below"]);
    let mut cluster = Cluster::start().await;
    cluster.mount("lake", "s3://behind", &store.endpoint, |_| {}).await;
    cluster.mount("deep", "s3://below/some/prefix", &store.endpoint, |_| {}).await;
    cluster.serve(gateway_settings()).await;
    let (failed_direct, all) = check(&store.endpoint, "direct", Some((ACCESS_KEY, SECRET_KEY))).await;
    eprintln!("the store fails: {failed_direct:#?}");
    for bucket in ["lake", "deep"] {
        let (failed, ran) = check(&cluster.endpoint(), bucket, None).await;
        assert_eq!(ran, all);
        eprintln!("the gateway fails of {} checks at {bucket}: {failed:#?}", all.len());
        let worse: Vec<_> =
            failed.iter().filter(|failure| !failed_direct.iter().any(|direct| name(direct) == name(failure))).collect();
        assert!(
            worse.is_empty(),
            "{bucket}: the store passes what the gateway does not: {worse:#?}\nthe store fails {failed_direct:#?}"
        );
    }
}
