//! The processes that benchmarks run against; each answers a line with a line until its input ends.

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use forebay_bench_harness::{say, security};
use forebay_node::Node;
use forebay_testing::{S3Server, S3Settings};
use forebay_transport::Address;
use forebay_types::{Error, Result};

use crate::heap;
use crate::rig::{BUCKET, ServerCounts};

/// An S3 server: `take` gives its counters and resets them, `link BYTES_PER_SEC LATENCY_MS` sets the link.
pub fn s3(folder: String, bytes_per_sec: u64, latency_ms: u64) -> Result<()> {
    let server = S3Server::start(S3Settings {
        folder: folder.into(),
        bandwidth: (bytes_per_sec > 0).then_some(bytes_per_sec),
        latency: Duration::from_millis(latency_ms),
        buckets: vec![BUCKET.to_string()],
        ..S3Settings::default()
    })?;
    say(&server.endpoint())?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["take"] => {
                let counts = ServerCounts::from(server.counters());
                server.reset_counters();
                say(&serde_json::to_string(&counts).expect("counters are plain"))?;
            }
            ["link", rate, latency] => {
                let number = |text: &str| text.parse::<u64>().map_err(|error| Error::invalid(format!("{text}: {error}")));
                let rate = number(rate)?;
                server.set_bandwidth((rate > 0).then_some(rate));
                server.set_latency(Duration::from_millis(number(latency)?));
                say("ok")?;
            }
            _ => return Err(Error::invalid(format!("unknown request {line:?}"))),
        }
    }
    Ok(())
}

/// A coordinator and a worker: `heap` gives the live heap's bytes, `sockets` the bytes read from shared storage's sockets.
pub async fn node(folder: String, tiers: (u64, u64), listen: Option<String>, advertise: Option<String>) -> Result<()> {
    let mut node = Node::lead_in(Path::new(&folder), security()).await?;
    start_worker(&mut node, &folder, tiers, listen, advertise).await?;
    say(&node.coordinator_at().to_string())?;
    answer(|line| match line {
        "heap" => Ok(heap::live_bytes()),
        "sockets" => Ok(node.workers[0].report().storage.iter().map(|(_, counters)| counters.socket_bytes_in).sum()),
        _ => Err(Error::invalid(format!("unknown request {line:?}"))),
    })
    .await?;
    node.shutdown().await;
    Ok(())
}

/// A worker of a coordinator that runs elsewhere.
pub async fn worker(folder: String, coordinator: String, dram_bytes: u64) -> Result<()> {
    let mut node = Node::join(coordinator.parse()?, security());
    start_worker(&mut node, &folder, (dram_bytes, 0), None, None).await?;
    say("joined")?;
    answer(|line| Err(Error::invalid(format!("unknown request {line:?}")))).await?;
    node.shutdown().await;
    Ok(())
}

/// Starts a worker with so many bytes of memory and of disk: at any port, unless somebody says where.
async fn start_worker(
    node: &mut Node,
    folder: &str,
    (dram_bytes, disk_bytes): (u64, u64),
    listen: Option<String>,
    advertise: Option<String>,
) -> Result<()> {
    let mut settings = node.worker_in(Path::new(folder), dram_bytes);
    settings.store.disk_bytes = disk_bytes;
    settings.advertise = advertise;
    if let Some(listen) = listen {
        settings.listen = Address::Tcp(listen);
    }
    node.start_worker(settings).await?;
    Ok(())
}

/// Answers lines until the input ends, which it does with whoever started this process.
async fn answer(mut number: impl FnMut(&str) -> Result<u64>) -> Result<()> {
    let (send, mut lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(|line| line.ok()).try_for_each(|line| send.blocking_send(line))
    });
    while let Some(line) = lines.recv().await {
        say(&number(&line)?.to_string())?;
    }
    Ok(())
}
