//! `forebay doctor`: what stands in the way of running well here, and what to do about it.
//!
//! Owns: one finding a check, each with its remedy. Never does: change anything, nor read more of a storage than a few megabytes.
//! Start with [`run`].

mod cluster;
mod finding;
mod listener;
mod machine;
mod place;
mod storage;

use finding::{Finding, State};

use crate::cli::DoctorArgs;
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::Output;

/// Checks everything, tells of each check as it is done, and fails when one failed.
pub(crate) async fn run(config: &Config, args: DoctorArgs) -> Outcome {
    let mut told = Told { output: Output::new(args.json), failed: 0, warned: 0 };
    told.all(machine::check(config))?;
    told.all(place::check(config))?;
    let (client, of_cluster) = cluster::check(config).await;
    told.all(of_cluster)?;
    if let Some(client) = client {
        for mount in &client.view().mounts {
            told.one(storage::check(&client, mount).await)?;
        }
    }
    told.end()
}

struct Told {
    output: Output,
    failed: usize,
    warned: usize,
}

impl Told {
    fn all(&mut self, findings: Vec<Finding>) -> Outcome {
        findings.into_iter().try_for_each(|finding| self.one(finding))
    }

    fn one(&mut self, finding: Finding) -> Outcome {
        match finding.state {
            State::Ok => {}
            State::Warning => self.warned += 1,
            State::Failure => self.failed += 1,
        }
        if self.output.json {
            self.output.record(&finding)?;
        } else {
            for line in finding.lines() {
                self.output.line(&line)?;
            }
        }
        // One by one: a storage that doesn't answer takes its time.
        self.output.finish()
    }

    fn end(mut self) -> Outcome {
        if !self.output.json {
            self.output.line("")?;
            self.output.line(&match (self.failed, self.warned) {
                (0, 0) => "nothing to mend".to_string(),
                (failed, warned) => format!("{failed} to mend, {warned} to look at"),
            })?;
        }
        self.output.finish()?;
        match self.failed {
            0 => Ok(()),
            1 => Err(forebay_types::Error::invalid("a check failed: its line says what to do").into()),
            more => Err(forebay_types::Error::invalid(format!("{more} checks failed: their lines say what to do")).into()),
        }
    }
}
