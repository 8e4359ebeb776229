//! The cluster that the configuration names.

use forebay_client::Client;
use forebay_protocol::{ClusterStatus, PROTOCOL_VERSION, WorkerState};

use super::super::status;
use super::finding::Finding;
use crate::config::Config;
use crate::connect::connect;

/// What is to say of it, and a client where one answers.
pub(super) async fn check(config: &Config) -> (Option<Client>, Vec<Finding>) {
    let address = &config.settings.coordinator.0;
    let client = match connect(config).await {
        Ok(client) => client,
        Err(error) => {
            let remedy = "or show a credential that may read, with --token-file; nothing else here needs a cluster";
            return (None, vec![Finding::warning("coordinator", error.to_string(), remedy)]);
        }
    };
    let findings = match status::ask(&client).await {
        Ok(status) => of_status(address, &status),
        Err(error) => vec![Finding::failure("coordinator", error.to_string(), "look at its log; show a token that may read")],
    };
    (Some(client), findings)
}

fn of_status(address: &str, status: &ClusterStatus) -> Vec<Finding> {
    let mut findings = vec![coordinator(address, &status.forebay_version), workers(status)];
    for (info, state, report) in &status.workers {
        let check = format!("worker {}", info.address);
        if *state == WorkerState::Live && info.protocol < PROTOCOL_VERSION {
            let found = format!("it speaks an earlier protocol than this program's {PROTOCOL_VERSION}");
            findings.push(Finding::warning(&check, found, "upgrade it: nothing that is new is asked of it until then"));
        }
        findings.extend(report.warnings.iter().map(|warning| Finding::warning(&check, &warning.text, "look at its log")));
    }
    findings
}

fn coordinator(address: &str, version: &str) -> Finding {
    let found = format!("{address} runs {version}");
    match version == env!("CARGO_PKG_VERSION") {
        true => Finding::ok("coordinator", found),
        false => Finding::warning(
            "coordinator",
            format!("{found}, this is {}", env!("CARGO_PKG_VERSION")),
            "run the same version on both sides",
        ),
    }
}

fn workers(status: &ClusterStatus) -> Finding {
    let lost: Vec<_> = status.workers.iter().filter(|(_, state, _)| *state == WorkerState::Lost).collect();
    let live = status.workers.len() - lost.len();
    let found = format!("{live} live, {} lost", lost.len());
    match (live, lost.as_slice()) {
        (0, _) => Finding::failure("workers", found, "start one with `forebay worker`: nothing is cached without"),
        (_, []) => Finding::ok("workers", found),
        (_, lost) => {
            let names: Vec<_> = lost.iter().map(|(info, _, _)| info.address.as_str()).collect();
            Finding::warning("workers", found, format!("start {} again, or wait until the lease has run out", names.join(", ")))
        }
    }
}
