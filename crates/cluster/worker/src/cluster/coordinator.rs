//! Questions to the coordinator.

use std::time::Duration;

use forebay_protocol::{ControlCall, ControlReply, check_known, decode_from, encode_for};
use forebay_transport::{Address, Connection, Security};
use forebay_types::{Error, Result};

/// How long the coordinator may take for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Asks the coordinator over `line`, which is made anew when it has ended.
pub(crate) async fn ask(
    coordinator: &Address,
    security: &Security,
    line: &mut Option<Connection>,
    request: impl Into<ControlCall>,
) -> Result<ControlReply> {
    let request: ControlCall = request.into();
    let answer = async {
        let connection = match line.take().filter(|line| !line.is_closed()) {
            Some(connection) => connection,
            None => Connection::connect(coordinator, security).await?,
        };
        let version = connection.version();
        if let Err(error) = check_known(&request, request.name(), version) {
            *line = Some(connection);
            return Err(error.context(format!("coordinator {coordinator}")));
        }
        let answer = connection.call(encode_for(version, &request.for_version(version)), Vec::new()).await?;
        *line = Some(connection);
        match decode_from(version, &answer.meta)? {
            ControlReply::Failed { kind, message } => Err(Error::new(kind, message)),
            reply => Ok(reply),
        }
    };
    match forebay_runtime::deadline::within(ANSWER_WITHIN, answer).await {
        Ok(result) => result,
        Err(_) => Err(Error::retry(format!("the coordinator at {coordinator} does not answer: see whether it runs"))),
    }
}
