use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{ControlReply, MemberRequest};
use forebay_transport::{Address, Security};

use crate::membership::ask;
use crate::serving::Serving;

/// Time between two tries to reach the coordinator.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits at the coordinator for reasons to send a heartbeat at once, for ever: a closed window, new orders, a new view. Without
/// it all of that comes with the next heartbeat in turn.
pub(crate) async fn follow_news(serving: Arc<Serving>, coordinator: Address, security: Security) {
    let mut line = None;
    loop {
        match ask(&coordinator, &security, &mut line, MemberRequest::News(serving.id)).await {
            Ok(ControlReply::Done) => serving.ask_news.notify_one(),
            Ok(ControlReply::Unchanged) => {}
            // Heartbeats say that it is away.
            Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
