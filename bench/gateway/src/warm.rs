//! Requests a second of what all caches hold, against nginx and rclone, and beside a plain socket, with wrk as the client of all.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::load::{Ask, ranges, run, whole};
use crate::peers::{nginx, rclone};
use crate::plain;
use crate::rig::{KEY, Rig, environment};
use crate::sign::presign;
use forebay_bench_harness::{Bar, Figure, median};

const FILE_BYTES: u64 = 30_000_000;

/// A workload that fits all caches, and what it must be better than.
struct Workload {
    name: &'static str,
    asks: Vec<Ask>,
    connections: usize,
    over_nginx: f64,
    over_rclone: Option<f64>,
}

pub async fn all(seconds: u64, rounds: usize) {
    environment();
    let rig = Rig::start().await;
    let files = rig.store("files", 4, FILE_BYTES as usize);
    let small = rig.store("small", 500, 50_000);
    let workloads = [
        Workload {
            name: "warm-64k-ranges",
            asks: ranges(&files, FILE_BYTES, 64 << 10, 1000),
            connections: 8,
            over_nginx: 1.5,
            over_rclone: Some(4.0),
        },
        Workload {
            name: "warm-50kb-objects",
            asks: whole(&small, 50_000),
            connections: 16,
            over_nginx: 1.3,
            over_rclone: Some(4.0),
        },
        Workload {
            name: "warm-1m-ranges",
            asks: ranges(&files, FILE_BYTES, 1 << 20, 300),
            connections: 8,
            over_nginx: 1.2,
            over_rclone: None,
        },
    ];
    // What is measured is the caches: the link is no matter from here.
    rig.s3.set_bandwidth(None);
    let nginx = nginx(rig.s3.address(), rig.folder.path());
    let rclone = rclone(rig.s3.address(), rig.folder.path());
    let servers = [rig.address(), nginx.address, rclone.address];
    for workload in workloads {
        for server in servers {
            run(server, &workload.asks, 4).await;
        }
        let (_plain, plain) = plain::start(workload.asks[0].bytes);
        let mut rates: [Vec<f64>; 4] = Default::default();
        for _ in 0..rounds {
            for (server, rates) in servers.iter().chain([&plain]).zip(&mut rates) {
                rates.push(wrk(*server, &workload, seconds, rig.folder.path()).await);
            }
        }
        let [ours, nginx, rclone, plain] = rates.map(median);
        let print = |peer: &str, rate, bar| {
            Figure::new(workload.name, ours, "requests/s", peer, rate, Bar::RatioAtLeast(bar)).within(plain).print(true);
        };
        print("nginx", nginx, workload.over_nginx);
        if let Some(bar) = workload.over_rclone {
            print("rclone", rclone, bar);
        }
    }
}

/// Requests a second, each presigned beforehand.
async fn wrk(address: SocketAddr, workload: &Workload, seconds: u64, folder: &Path) -> f64 {
    let list: String = workload
        .asks
        .iter()
        .map(|ask| {
            let range = ask.range.map_or(String::new(), |(start, end)| format!("bytes={start}-{}", end - 1));
            format!("{{{:?}, {range:?}}},\n", presign(KEY, address, &ask.path))
        })
        .collect();
    let script = format!(
        "local asks = {{\n{list}}}\nlocal all = {{}}\nlocal at = 0\n\
         function init() for n, ask in ipairs(asks) do local h = {{[\"Host\"] = \"{address}\"}} if ask[2] ~= \"\" then h[\"Range\"] = ask[2] end all[n] = wrk.format(\"GET\", ask[1], h) end end\n\
         function request() at = at % #all + 1 return all[at] end\n"
    );
    let file = folder.join("wrk.lua");
    std::fs::write(&file, script).unwrap();
    let mut command = Command::new("wrk");
    command
        .args(["-t1", &format!("-c{}", workload.connections), &format!("-d{seconds}s"), "-s"])
        .arg(&file)
        .arg(format!("http://{address}"));
    let output = tokio::task::spawn_blocking(move || command.output().expect("wrk is installed")).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("Non-2xx"), "{text}");
    let rate = text.split("Requests/sec:").nth(1).unwrap_or_else(|| panic!("{text}"));
    rate.split_whitespace().next().unwrap().parse().unwrap()
}
