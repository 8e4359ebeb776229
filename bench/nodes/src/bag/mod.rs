//! Bar of bags: one stream of a thousand files over four links of 1 Gbit/s, against plain senders on the same links.

mod links;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use forebay_client::{Address, Client, ClientSettings, CreateOptions, NodeType, Nodes};
use forebay_coordinator::CoordinatorSettings;
use forebay_node::Node;

use forebay_bench_harness::{Served, at_least, median, security, until_input_ends};

use links::Links;

const WORKERS: usize = 4;
const FILES: usize = 1000;
const FILE_BYTES: usize = 1 << 20;
/// Bytes that the plain senders send, each.
const SENT_BYTES: usize = FILES * FILE_BYTES / WORKERS;

/// A bag of 1,000 files on four workers behind links of 1 Gbit/s each, read as one stream; against four plain senders behind the
/// same links, read by as many threads. Without the links' limit it says what the processors alone allow here.
pub async fn all(rounds: usize) {
    let links = Links::new(WORKERS);
    let folder = tempfile::tempdir().unwrap();
    let listen = Address::Tcp("0.0.0.0:0".into());
    let settings = CoordinatorSettings { listen, ..Node::coordinator_in(folder.path(), security()) };
    let node = Node::lead(settings).await.unwrap();
    let port = node.coordinator_at().to_string().rsplit_once(':').unwrap().1.to_string();
    let (mut workers, mut senders) = (Vec::new(), Vec::new());
    for at in 0..WORKERS {
        let (place, join) = (folder.path().join(at.to_string()), format!("{}:{port}", links.gateway(at)));
        std::fs::create_dir(&place).unwrap();
        let listen = format!("{}:0", links.address(at));
        let arguments = ["--worker", &join, "--listen", &listen, "--folder", place.to_str().unwrap()];
        workers.push(start(&links, at, &arguments).await);
        senders.push(start(&links, at, &["--send", &listen]).await);
    }
    let settings = ClientSettings { in_place: false, ..node.client_settings() };
    let nodes = Client::connect(settings).await.unwrap().nodes();
    links.shape(false);
    fill(&nodes).await;
    let (mut unbound, mut bound, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        unbound.push(read(&nodes).await);
    }
    links.shape(true);
    for _ in 0..rounds {
        bound.push(read(&nodes).await);
        plain.push(receive(&senders));
    }
    let (unbound, bound, plain) = (median(unbound), median(bound), median(plain));
    at_least(
        "bag of 1000 files on 4 workers behind 1 Gbit/s each",
        "MB/s",
        bound,
        ("plain senders behind the same links", plain),
        0.9,
    );
    at_least("the same without the links' limit: what the processors allow", "MB/s", unbound, ("the links", plain), 0.9);
    drop((workers, senders));
}

async fn fill(nodes: &Nodes) {
    nodes.create("/tmp/b", CreateOptions::new(NodeType::Bag)).await.unwrap();
    let content = Bytes::from(vec![7; FILE_BYTES]);
    for file in 0..FILES {
        let path = format!("/tmp/b/{file:04}");
        nodes.create(&path, CreateOptions::new(NodeType::File)).await.unwrap();
        let mut writer = nodes.writer(&path).await.unwrap();
        writer.write_bytes(content.clone()).await.unwrap();
        writer.finish().await.unwrap();
    }
}

/// MB/s of the bag as one stream.
async fn read(nodes: &Nodes) -> f64 {
    let began = Instant::now();
    let mut reader = nodes.bag("/tmp/b").await.unwrap();
    let mut bytes = 0;
    while let Some(piece) = reader.next().await.unwrap() {
        bytes += piece.len();
    }
    assert_eq!(bytes, FILES * FILE_BYTES);
    bytes as f64 / 1e6 / began.elapsed().as_secs_f64()
}

/// MB/s of all plain senders together.
fn receive(senders: &[Machine]) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (_, address) in senders {
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                let mut buffer = vec![0; 64 << 10];
                let mut bytes = 0;
                while let read @ 1.. = stream.read(&mut buffer).unwrap() {
                    bytes += read;
                }
                assert_eq!(bytes, SENT_BYTES);
            });
        }
    });
    (SENT_BYTES * senders.len()) as f64 / 1e6 / began.elapsed().as_secs_f64()
}

/// This program on a machine of its own, and the address that it told.
type Machine = (Served, String);

async fn start(links: &Links, at: usize, arguments: &[&str]) -> Machine {
    let command = links.run(at, arguments);
    // The coordinator answers it meanwhile, in this process.
    tokio::task::spawn_blocking(|| Served::of(command)).await.unwrap().unwrap()
}

/// A worker on its machine; ends with its parent.
pub async fn work(join: &str, listen: &str, folder: &Path) {
    let mut node = Node::join(Address::Tcp(join.into()), security());
    let mut settings = node.worker_in(folder, 1 << 30);
    (settings.listen, settings.unix_socket) = (Address::Tcp(listen.into()), None);
    settings.temporary_share = 0.9;
    let address = node.start_worker(settings).await.unwrap().address();
    println!("{address}");
    until_input_ends().await;
    node.shutdown().await;
}

/// Sends bytes to everyone who connects; ends with its parent.
pub fn send(listen: &str) {
    let listener = TcpListener::bind(listen).unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let bytes = vec![7; 256 << 10];
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut left = SENT_BYTES;
            while left > 0 {
                let part = left.min(bytes.len());
                stream.write_all(&bytes[..part]).unwrap();
                left -= part;
            }
        }
    });
    let _ = std::io::read_to_string(std::io::stdin());
}
