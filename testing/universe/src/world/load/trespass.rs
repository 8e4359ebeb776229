//! A client whose credential only reads, and one with a credential that nobody gave: what they change is refused.

use std::sync::Arc;
use std::time::Duration;

use forebay_client::{AdminRequest, Client};
use forebay_oracle::load::{GIVEN_UP_AFTER, pause};
use forebay_oracle::{Rule, contents};
use forebay_protocol::{ControlCall, ControlReply, DataReply, DataRequest, PutCondition, decode, encode};
use forebay_runtime::time::timeout;
use forebay_transport::{Connection, Credential, Security};
use forebay_types::{Error, ErrorKind, Grant, Key, MountId, Result, Role};
use rand::Rng;
use rand::rngs::StdRng;

use super::{ALL, MOUNTS};
use crate::world::course::Course;
use crate::world::hosts;

const PAUSE: Duration = Duration::from_secs(4);
/// A version that nobody writes who may.
const NEVER: u32 = 1_000_000_000;

/// Asks for what may not be until the load ends.
pub(super) async fn trespasses(client: Client, course: Arc<Course>, number: usize, mut chance: StdRng) {
    let name = format!("reader-{number}");
    let reader = Credential::generate(&name, 1).expect("chance for a secret");
    let add = AdminRequest::TokenAdd { name, grant: Grant::everywhere(Role::Read), keys: reader.keys() };
    let stranger = Security::owner("what no process of a world knows").expect("long enough");
    let reader = Security::holder(reader);
    let mut is_given = false;
    while course.calls.goes_on() {
        pause(&mut chance, course.paced(PAUSE)).await;
        // What was given and not answered is there the next time.
        is_given = is_given || !matches!(client.control(add.clone()).await, Err(error) if error.kind() != ErrorKind::Conflict);
        let worker = chance.random_range(0..course.crowd.workers);
        let who = if chance.random() { &reader } else { &stranger };
        let asked = timeout(GIVEN_UP_AFTER, async { [puts(who, worker).await, unmounts(who).await] });
        for told in asked.await.into_iter().flatten() {
            match told {
                Ok(()) => course.wrong(Rule::Refused, format!("{who:?} has changed something")),
                Err(error) if error.kind() == ErrorKind::Denied => course.note_refused(),
                Err(error) => tracing::debug!(%error, "not even refused"),
            }
        }
    }
}

/// Writes an object of the first mount.
async fn puts(who: &Security, worker: usize) -> Result<()> {
    let key = Key::new(format!("objects/{}", ALL.start))?;
    let put = DataRequest::Put { mount: MountId(1), key, condition: PutCondition::Any };
    let connection = Connection::connect(&hosts::worker_address(worker), who).await?;
    let answer = connection.call(encode(&put), vec![contents::bytes(ALL.start, NEVER)]).await?;
    match decode(&answer.meta)? {
        DataReply::Info(_) => Ok(()),
        DataReply::Failed { kind, message } => Err(Error::new(kind, message)),
        _ => Err(Error::retry("it was not done now")),
    }
}

/// Removes that mount.
async fn unmounts(who: &Security) -> Result<()> {
    let remove = AdminRequest::MountRemove { name: MOUNTS[0].parse().expect("a name") };
    let connection = Connection::connect(&hosts::coordinator_address(), who).await?;
    let answer = connection.call(encode(&ControlCall::from(remove)), Vec::new()).await?;
    match decode(&answer.meta)? {
        ControlReply::Failed { kind, message } => Err(Error::new(kind, message)),
        _ => Ok(()),
    }
}
