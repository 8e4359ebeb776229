//! What runs until it is told to stop: coordinator, worker, and both in one process.

mod http;
mod metrics;
mod running;
mod signals;

use std::time::Duration;

use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
pub(crate) use running::{CoordinatorPart, RunSettings, Running, WorkerPart};
pub(crate) use signals::Signals;

/// Runs coordinator, worker and metadata in one process.
pub(crate) async fn up(config: &Config) -> Outcome {
    let settings = RunSettings {
        folder: config.data_dir().to_path_buf(),
        security: config.security().clone(),
        http: config.http()?.map(str::to_string),
        flight: config.flight()?.map(str::to_string),
        coordinator: Some(coordinator_part(config)?),
        worker: Some(worker_part(config)?),
        gateway: config.gateway()?,
        coordinator_at: config.coordinator_text().to_string(),
    };
    run(settings, |running, output| {
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
        let address = running.coordinator_address();
        if address != "127.0.0.1:7400" {
            output.line(&format!("  (each with --coordinator {address}, or after `export FOREBAY_COORDINATOR={address}`)"))?;
        }
        Ok(())
    })
    .await
}

/// Runs the coordinator of a cluster.
pub(crate) async fn coordinator(config: &Config) -> Outcome {
    let settings = RunSettings {
        folder: config.data_dir().to_path_buf(),
        security: config.security().clone(),
        http: config.http()?.map(str::to_string),
        flight: None,
        coordinator: Some(coordinator_part(config)?),
        worker: None,
        gateway: None,
        coordinator_at: String::new(),
    };
    run(settings, |running, output| {
        output.line("")?;
        output.line(&format!("Next, on each node:  forebay worker --coordinator {}", running.coordinator_address()))
    })
    .await
}

/// Runs a worker of a cluster.
pub(crate) async fn worker(config: &Config) -> Outcome {
    let settings = RunSettings {
        folder: config.data_dir().to_path_buf(),
        security: config.security().clone(),
        http: config.http()?.map(str::to_string),
        flight: None,
        coordinator: None,
        worker: Some(worker_part(config)?),
        gateway: None,
        coordinator_at: config.coordinator_text().to_string(),
    };
    run(settings, |_, _| Ok(())).await
}

/// Runs an S3 gateway to a cluster.
pub(crate) async fn gateway(config: &Config) -> Outcome {
    let Some(gateway) = config.gateway()? else {
        return Err(Failure::Usage(
            "the gateway lets nobody in: set FOREBAY_S3_ACCESS_KEY and FOREBAY_S3_SECRET_KEY, name an s3-keys-file, or switch on s3-anonymous"
                .to_string(),
        ));
    };
    let settings = RunSettings {
        folder: config.data_dir().to_path_buf(),
        security: config.security().clone(),
        http: None,
        flight: None,
        coordinator: None,
        worker: None,
        gateway: Some(gateway),
        coordinator_at: config.coordinator_text().to_string(),
    };
    run(settings, |_, _| Ok(())).await
}

async fn run(settings: RunSettings, next: impl FnOnce(&Running, &mut Output) -> Outcome) -> Outcome {
    // Before anything starts: a signal that comes while it starts must stop it in order too.
    let mut signals = Signals::new()?;
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
        _ = signals.next() => {
            tracing::warn!("forced to stop");
            std::process::exit(130);
        }
        () = tokio::time::sleep(Duration::from_secs(60)) => {
            tracing::warn!("could not stop in order within 60 s");
            std::process::exit(1);
        }
    }
    tracing::info!("stopped");
    Ok(())
}

pub(crate) fn coordinator_part(config: &Config) -> Outcome<CoordinatorPart> {
    Ok(CoordinatorPart {
        listen: config.coordinator_listen()?.to_string(),
        metadata_url: config.metadata_url(),
        lease: config.lease(),
        placement: config.placement(),
    })
}

pub(crate) fn worker_part(config: &Config) -> Outcome<WorkerPart> {
    Ok(WorkerPart {
        coordinator: config.coordinator_text().to_string(),
        listen: config.worker_listen()?.to_string(),
        advertise: config.advertise().map(str::to_string),
        in_place: config.in_place(),
        dram_bytes: config.dram_bytes(),
        disk_bytes: config.disk_bytes(),
        serve_bytes_per_sec: config.serve_bytes_per_sec(),
        temporary_share: config.temporary_share(),
        storage_share: config.storage_share(),
    })
}
