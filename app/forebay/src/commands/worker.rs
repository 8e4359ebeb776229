//! `forebay worker drain` and `resume`: tells the coordinator, and follows the draining to its end or until it is stuck.

use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_protocol::{AdminRequest, ControlReply, DrainReport, WorkerInfo, WorkerState};
use forebay_types::{Error, Result, WorkerId, format_bytes};
use serde::Serialize;

use super::status;
use crate::cli::{WorkerCommand, WorkerDrainArgs};
use crate::exit::Outcome;
use crate::output::Output;

/// Time between two looks at how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long what can't be moved is waited for: a worker that was just added has room.
const STUCK_FOR: Duration = Duration::from_secs(15);

/// A worker that is being drained, as JSON has it.
#[derive(Serialize)]
struct Drained {
    worker: String,
    state: &'static str,
    containers: u64,
    bytes_left: u64,
    stuck_bytes: u64,
}

pub(crate) async fn run(client: &Client, command: WorkerCommand) -> Outcome {
    match command {
        WorkerCommand::Drain(args) => drain(client, args).await,
        WorkerCommand::Resume(args) => {
            let (info, _) = find(client, &args.worker).await?;
            tell(client, info.id, false).await?;
            let mut output = Output::new(false);
            output.line(&format!("worker {} takes part again", info.id))?;
            output.finish()
        }
    }
}

async fn drain(client: &Client, args: WorkerDrainArgs) -> Outcome {
    let (info, _) = find(client, &args.worker).await?;
    tell(client, info.id, true).await?;
    let mut output = Output::new(args.json);
    let (mut shown, mut stuck_since) = (None, None::<Instant>);
    loop {
        // It says so with its next heartbeat.
        let (_, Some(now)) = find(client, &args.worker).await? else {
            forebay_runtime::time::sleep(LOOK_EVERY).await;
            continue;
        };
        if shown != Some(now) {
            show(&mut output, info.id, now, args.json)?;
            shown = Some(now);
        }
        if now.done || !args.wait {
            return output.finish();
        }
        stuck_since = (now.stuck_bytes > 0).then(|| stuck_since.unwrap_or_else(forebay_runtime::now));
        if stuck_since.is_some_and(|since| since.elapsed() > STUCK_FOR) {
            return Err(Error::retry(format!(
                "worker {}: no other worker has room for {} bytes of the {} bytes that it still has, or they are below a quota: they \
                 stay there and are served. Add a worker, delete nodes, lift quotas of containers that hold containers, or undo with \
                 `forebay worker resume {}`",
                info.id, now.stuck_bytes, now.bytes, info.id
            ))
            .into());
        }
        forebay_runtime::time::sleep(LOOK_EVERY).await;
    }
}

fn show(output: &mut Output, worker: WorkerId, now: DrainReport, json: bool) -> Outcome {
    let state = if now.done { "drained" } else { "draining" };
    if json {
        let (containers, bytes_left, stuck_bytes) = (now.containers, now.bytes, now.stuck_bytes);
        return output.record(&Drained { worker: worker.to_string(), state, containers, bytes_left, stuck_bytes });
    }
    output.line(&match now.done {
        true => format!("worker {worker} is drained: stop it whenever you like"),
        false => format!("worker {worker} drains: {} in {} containers left", format_bytes(now.bytes), now.containers),
    })
}

async fn tell(client: &Client, worker: WorkerId, draining: bool) -> Result<()> {
    match client.control(AdminRequest::Drain { worker, draining }).await? {
        ControlReply::Done => Ok(()),
        other => Err(other.unexpected()),
    }
}

/// A live worker by its id or address, and how far it is with being drained.
async fn find(client: &Client, name: &str) -> Result<(WorkerInfo, Option<DrainReport>)> {
    let status = status::ask(client).await?;
    let mut live = status.workers.into_iter().filter(|(_, state, _)| *state == WorkerState::Live);
    let found = live.find(|(info, ..)| info.id.to_string() == name || info.address == name);
    let (info, _, report) = found.ok_or_else(|| {
        Error::not_found(format!("{name}: there is no live worker of that id or address: see `forebay status`"))
    })?;
    Ok((info, report.drain))
}
