//! Calls that end when nobody waits for their answers any more.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::Left;
use forebay_runtime::deadline;

use crate::{Response, Session};

/// So much later than who asked: he is to find by himself that his time is over, and not to be answered in that moment that it is.
const AFTER: Duration = Duration::from_millis(200);

/// Has a session answer a request for as long as who asked waits: as if it were cancelled then, where the word of that is lost or the one
/// who would send it hangs. What the session asks of others in the meantime is told what is left.
pub(crate) async fn while_waited<S: Session>(session: Arc<S>, left: Left, meta: Bytes, payload: Bytes) -> Response {
    let waited = left.known().map(|longest| (longest, meta.clone()));
    // In one place for both: a call is large, and is moved no more.
    let call = pin!(session.call(meta, payload));
    let Some((longest, asked)) = waited else { return call.await };
    if let Ok(response) = deadline::within(longest + AFTER, call).await { response } else { session.given_up(&asked) }
}
