//! What runs until it is told to stop: coordinator, worker, and both in one process.

#[cfg(feature = "cluster")]
mod cluster;
mod doors;
mod follow;
mod http;
#[cfg(feature = "cluster")]
mod known_scheduler;
mod running;
mod signals;
mod sql;

use std::time::Duration;

use forebay_coordinator::CoordinatorSettings;
use forebay_data_folder::memory_bytes;
use forebay_node::Node;
use forebay_transport::{Address, Security};
use forebay_types::format_bytes;
use forebay_worker::WorkerSettings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::UpArgs;
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
#[cfg(feature = "cluster")]
pub(crate) use cluster::engine as distributed_engine;
#[cfg(feature = "cluster")]
use cluster::{ClusterPart, ExecutorPart};
#[cfg(feature = "cluster")]
pub(crate) use known_scheduler::KnownScheduler;
use running::{RunSettings, Running};
pub(crate) use signals::Signals;
pub(crate) use sql::SqlPart;

/// Where metrics are by default: roles that stand beside each other on a machine have ports of their own.
pub(crate) const HTTP_PORT: u16 = 7480;
#[cfg(feature = "cluster")]
const EXECUTOR_HTTP_PORT: u16 = 7481;
#[cfg(feature = "cluster")]
const SCHEDULER_HTTP_PORT: u16 = 7482;
const GATEWAY_HTTP_PORT: u16 = 7483;
/// How long a process of a cluster waits for the coordinator that it is started beside.
const COORDINATOR_WITHIN: Duration = Duration::from_secs(60);

/// Runs coordinator, worker and metadata in one process.
pub(crate) async fn up(config: &Config, args: &UpArgs) -> Outcome {
    #[cfg(feature = "cluster")]
    let workers = args.cluster.unwrap_or(1);
    #[cfg(not(feature = "cluster"))]
    let workers = {
        let _ = args;
        1
    };
    let gateway = config.gateway()?;
    let is_closed = gateway.is_none() && config.settings.s3.on().is_some();
    let settings = RunSettings {
        flight: config.flight()?.map(str::to_string),
        coordinator: Some(coordinator_settings(config)?),
        worker: Some(share(worker_settings(config)?, workers)),
        gateway,
        sql: Some(SqlPart::of(config)),
        extra_workers: workers - 1,
        #[cfg(feature = "cluster")]
        cluster: args.cluster.map(|workers| cluster_part(config, usize::from(workers))).transpose()?,
        ..RunSettings::of(config, config.coordinator_security()?, HTTP_PORT)?
    };
    run(settings, |running, output| {
        if is_closed {
            output.line("  s3           off (nobody has a key: set FOREBAY_S3_ACCESS_KEY and FOREBAY_S3_SECRET_KEY)")?;
        }
        let next = [
            String::new(),
            "Next, in another terminal:".to_string(),
            "  forebay mount add lake s3://BUCKET/PREFIX     # or a folder: forebay mount add nas /mnt/nas".to_string(),
            "  forebay ls /lake".to_string(),
            "  forebay sql \"select * from '/lake/FILE.parquet' limit 10\"".to_string(),
            "  forebay status".to_string(),
        ];
        for line in next {
            output.line(&line)?;
        }
        let address = &running.coordinator_address;
        if let Some(scheduler) = running.scheduler_address() {
            output.line(&format!(
                "  forebay jobs                                  # statements run on all executors (scheduler {scheduler})"
            ))?;
        }
        if address != "127.0.0.1:7400" {
            output.line(&format!("  (each with --coordinator {address}, or after `export FOREBAY_COORDINATOR={address}`)"))?;
        }
        Ok(())
    })
    .await
}

pub(crate) async fn coordinator(config: &Config) -> Outcome {
    let settings = RunSettings {
        coordinator: Some(coordinator_settings(config)?),
        ..RunSettings::of(config, config.coordinator_security()?, HTTP_PORT)?
    };
    run(settings, |running, output| {
        output.line("")?;
        output.line(&format!("Next, on each node:  forebay worker --coordinator {}", running.coordinator_address))
    })
    .await
}

pub(crate) async fn worker(config: &Config) -> Outcome {
    let worker = Some(worker_settings(config)?);
    let settings = RunSettings { worker, ..RunSettings::of(config, member_security(config).await?, HTTP_PORT)? };
    run(settings, |_, _| Ok(())).await
}

pub(crate) async fn gateway(config: &Config) -> Outcome {
    let Some(gateway) = config.gateway()? else {
        return Err(Failure::Usage(
            "the gateway lets nobody in: set FOREBAY_S3_ACCESS_KEY and FOREBAY_S3_SECRET_KEY, name an s3-keys-file, or switch on s3-anonymous"
                .to_string(),
        ));
    };
    let gateway = Some(gateway);
    let settings = RunSettings { gateway, ..RunSettings::of(config, config.security.clone(), GATEWAY_HTTP_PORT)? };
    run(settings, |_, _| Ok(())).await
}

#[cfg(feature = "cluster")]
pub(crate) async fn scheduler(config: &Config) -> Outcome {
    let part = ClusterPart { executors: None, ..cluster_part(config, 1)? };
    run(cluster_settings(config, part, SCHEDULER_HTTP_PORT).await?, |running, output| {
        let scheduler = running.scheduler_address().unwrap_or_default();
        output.line("")?;
        output.line(&format!(
            "Next, beside each worker:  forebay executor   (--scheduler {scheduler}, or as the coordinator knows it)"
        ))
    })
    .await
}

#[cfg(feature = "cluster")]
pub(crate) async fn executor(config: &Config) -> Outcome {
    let part = ClusterPart { scheduler: None, ..cluster_part(config, 1)? };
    run(cluster_settings(config, part, EXECUTOR_HTTP_PORT).await?, |_, _| Ok(())).await
}

#[cfg(feature = "cluster")]
async fn cluster_settings(config: &Config, part: ClusterPart, http_port: u16) -> Outcome<RunSettings> {
    let (sql, cluster) = (Some(SqlPart::of(config)), Some(part));
    Ok(RunSettings { sql, cluster, ..RunSettings::of(config, member_security(config).await?, http_port)? })
}

/// What a process of a cluster shows. One that is started before its coordinator, on the same machine, waits for that one's
/// secret to be there.
async fn member_security(config: &Config) -> Outcome<Security> {
    let began = forebay_runtime::now();
    loop {
        match config.member_security() {
            Err(error) if began.elapsed() >= COORDINATOR_WITHIN => return Err(error),
            Err(error) if !config.waits_for_secret() => return Err(error),
            Err(_) => forebay_runtime::time::sleep(Duration::from_millis(100)).await,
            Ok(security) => return Ok(security),
        }
    }
}

/// Scheduler and executors, as `up` runs them for so many workers.
#[cfg(feature = "cluster")]
fn cluster_part(config: &Config, workers: usize) -> Outcome<ClusterPart> {
    let advertise = config.settings.advertise.as_ref().and_then(|advertise| advertise.0.rsplit_once(':'));
    let advertise = advertise.map(|(host, _)| host.to_string());
    Ok(ClusterPart {
        scheduler: Some(forebay_distributed::SchedulerSettings {
            listen: config.scheduler_listen()?.to_string(),
            advertise: advertise.clone(),
            security: Security::default(),
            order: config.settings.job_order,
            ahead: config.settings.data_scheduler,
            shuffle: config.shuffle(),
            task_bytes: config.settings.task_bytes.0,
            copies: config.settings.task_copies.then(forebay_distributed::CopyRules::default),
            slow_query: config.slow_query(),
        }),
        executors: Some(ExecutorPart {
            scheduler: config.scheduler().map(str::to_string),
            listen: config.executor_listen()?.to_string(),
            advertise,
            slots: config.slots(workers),
            folder: config.settings.data_dir.join("results"),
            in_place: config.settings.in_place,
        }),
        wait: config.settings.wait,
    })
}

/// What each of several workers of one machine has: its tiers are shared out.
fn share(mut worker: WorkerSettings, workers: u16) -> WorkerSettings {
    let (store, workers) = (&mut worker.store, u64::from(workers.max(1)));
    store.dram_bytes /= workers;
    store.disk_bytes /= workers;
    store.disks.iter_mut().for_each(|disk| disk.bytes /= workers);
    worker
}

async fn run(settings: RunSettings, next: impl FnOnce(&Running, &mut Output) -> Outcome) -> Outcome {
    // Before anything starts: a signal that comes while it starts must stop it in order too.
    let mut signals = Signals::new()?;
    raise_open_files();
    let running = tokio::select! {
        running = Running::start(settings) => running?,
        _ = signals.next() => return Ok(()),
    };
    {
        let mut output = Output::new(false);
        running.describe(&mut output)?;
        next(&running, &mut output)?;
        output.finish()?;
    }
    let signal = tokio::select! {
        signal = signals.next() => signal,
        ended = running.ended() => {
            // Another coordinator leads now, say: whoever restarts processes starts this one again.
            running.shutdown().await;
            return Ok(ended?);
        }
    };
    tracing::info!(signal, "stopping; the same again forces it");
    tokio::select! {
        () = running.shutdown() => {}
        () = signals.another() => {
            tracing::warn!("forced to stop");
            std::process::exit(130);
        }
        () = forebay_runtime::time::sleep(Duration::from_secs(60)) => {
            tracing::warn!("could not stop in order within 60 s");
            std::process::exit(1);
        }
    }
    tracing::info!("stopped");
    Ok(())
}

fn coordinator_settings(config: &Config) -> Outcome<CoordinatorSettings> {
    let listen = Address::Tcp(config.coordinator_listen()?.to_string());
    let (lease, placement) = (config.settings.lease, config.placement());
    Ok(CoordinatorSettings { lease, placement, ..CoordinatorSettings::new(listen, config.settings.metadata.0.clone()) })
}

/// A worker of a node on the data folder, with the tiers that are configured and at any port of this machine.
pub(crate) fn own_worker(config: &Config, node: &Node) -> WorkerSettings {
    let settings = &config.settings;
    let mut worker = node.worker_in(&settings.data_dir, settings.dram.0);
    worker.unix_socket = worker.unix_socket.filter(|_| settings.in_place);
    worker.storage_share = settings.storage_share.0;
    let (disks, store) = (config.disk_folders().into_iter(), worker.store.with_disk(settings.disk.0));
    worker.store = disks.fold(store, |store, (folder, bytes)| store.with_disk_folder(folder, bytes));
    worker
}

/// The one that runs as a role; of which cluster it is, it is told when it starts.
fn worker_settings(config: &Config) -> Outcome<WorkerSettings> {
    let settings = &config.settings;
    if let Some(warning) = beyond_the_memory(settings.dram.0, memory_bytes()) {
        tracing::warn!("{warning}");
    }
    Ok(WorkerSettings {
        listen: Address::Tcp(config.worker_listen()?.to_string()),
        advertise: settings.advertise.as_ref().map(|address| address.0.clone()),
        location: settings.location.as_ref().map(|label| label.0.clone()),
        serve_bytes_per_sec: settings.serve_bandwidth.map(|rate| rate.bytes_per_sec()),
        temporary_share: settings.temporary_share.0,
        shard_bytes: settings.shard_bytes.0,
        storage_queue_bytes: settings.storage_queue.0,
        ..own_worker(config, &Node::join(config.coordinator(), Security::default()))
    })
}

/// What is wrong, in words, where the DRAM tier may take more than there is. It goes on until all of that is taken.
fn beyond_the_memory(tier: u64, all: u64) -> Option<String> {
    (tier > all).then(|| {
        let (tier, all) = (format_bytes(tier), format_bytes(all));
        format!("DRAM tier: it may take {tier}, and this process has {all} of memory in all: make it smaller with --dram")
    })
}

/// Fewer open files than this, and a server soon refuses connections: each is a file, and so is each file that is mapped.
const FEW: u64 = 4096;

/// Takes as many open files as the process may have: shells hand out 1,024, too few for the connections of a server.
fn raise_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%error, "can't raise the limit of open files");
    }
    if let Some(files) = maximum.filter(|files| *files < FEW) {
        tracing::warn!(files, "few open files are allowed: raise the hard limit (ulimit -Hn, LimitNOFILE of systemd)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_of_more_than_the_memory_is_warned_of() {
        assert_eq!(beyond_the_memory(1 << 30, 1 << 30), None);
        let warning = beyond_the_memory(8 << 30, 1 << 30).unwrap();
        assert!(warning.contains("8.00 GiB") && warning.contains("1.00 GiB") && warning.contains("--dram"), "{warning}");
    }
}
