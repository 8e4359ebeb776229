//! The processes that benchmarks run against; each answers a line with a line until its input ends.

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use forebay_bench_harness::{say, security};
use forebay_demo::{ACCESS_KEY, S3Server, S3Settings, SECRET_KEY};
use forebay_node::{AccessRule, GatewaySettings, Node};
use forebay_transport::Address;
use forebay_types::{Error, Result};
use tokio::sync::mpsc::Receiver;

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

/// How a worker is set up.
pub(crate) struct WorkerShape {
    pub(crate) dram_bytes: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) listen: Option<String>,
    pub(crate) advertise: Option<String>,
    /// Bytes a second; nobody reads in place then, which is not held to them.
    pub(crate) sends: Option<u64>,
}

/// How a node is set up.
pub(crate) struct NodeShape {
    /// Without memory there is none.
    pub(crate) worker: WorkerShape,
    pub(crate) window: Option<Duration>,
}

/// A coordinator and a worker: `heap` gives the live heap's bytes, `sockets` the bytes read from shared storage's sockets, `gateway`
/// the port at which it serves S3 from now on.
pub(crate) async fn node(folder: String, shape: NodeShape) -> Result<()> {
    let mut led = Node::coordinator_in(Path::new(&folder), security());
    if let Some(window) = shape.window {
        led.placement.window = window;
        led.placement.poll = led.placement.poll.min(window / 3);
    }
    let mut node = Node::lead(led).await?;
    if shape.worker.dram_bytes > 0 {
        start_worker(&mut node, &folder, shape.worker).await?;
    }
    say(&node.coordinator_at().to_string())?;
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let number: u64 = match line.as_str() {
            "heap" => heap::live_bytes(),
            "sockets" => {
                let reports = node.workers.iter().map(|worker| worker.report());
                reports.flat_map(|report| report.storage).map(|(_, counters)| counters.socket_bytes_in).sum()
            }
            "gateway" => gateway(&mut node).await?,
            _ => return Err(Error::invalid(format!("unknown request {line:?}"))),
        };
        say(&number.to_string())?;
    }
    node.shutdown().await;
    Ok(())
}

/// Serves S3 to who has the store's key; at which port.
async fn gateway(node: &mut Node) -> Result<u64> {
    let mut settings = GatewaySettings::new("127.0.0.1:0");
    settings.keys.push(AccessRule::new(ACCESS_KEY, SECRET_KEY));
    let client = node.client().await?;
    Ok(node.serve_s3(client, settings).await?.address().port().into())
}

/// A worker of a coordinator that runs elsewhere: `sends BYTES_PER_SEC` sets what it sends at most.
pub(crate) async fn worker(folder: String, coordinator: String, shape: WorkerShape) -> Result<()> {
    let mut node = Node::join(coordinator.parse()?, security());
    start_worker(&mut node, &folder, shape).await?;
    say("joined")?;
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let unknown = || Error::invalid(format!("unknown request {line:?}"));
        let rate: u64 = line.strip_prefix("sends ").and_then(|rate| rate.parse().ok()).ok_or_else(unknown)?;
        node.workers.iter().for_each(|worker| worker.set_serve_bytes_per_sec(Some(rate)));
        say("ok")?;
    }
    node.shutdown().await;
    Ok(())
}

/// Starts a worker: at any port, unless somebody says where.
async fn start_worker(node: &mut Node, folder: &str, shape: WorkerShape) -> Result<()> {
    let mut settings = node.worker_in(Path::new(folder), shape.dram_bytes);
    settings.store.disk_bytes = shape.disk_bytes;
    settings.advertise = shape.advertise;
    if let Some(listen) = shape.listen {
        settings.listen = Address::Tcp(listen);
    }
    if shape.sends.is_some() {
        settings.serve_bytes_per_sec = shape.sends;
        settings.unix_socket = None;
    }
    node.start_worker(settings).await?;
    Ok(())
}

/// Lines of the input until it ends, which it does with whoever started this process.
fn lines() -> Receiver<String> {
    let (send, lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(|line| line.ok()).try_for_each(|line| send.blocking_send(line))
    });
    lines
}
