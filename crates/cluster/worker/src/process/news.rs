//! Reasons to send a heartbeat at once.

use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{ControlReply, MemberRequest};
use forebay_transport::{Address, Security};

use crate::cluster::{Cluster, ask};

/// Time between two tries to reach the coordinator.
const PAUSE: Duration = Duration::from_secs(1);

/// Waits at the coordinator for reasons to send a heartbeat at once, for ever: a closed window, new orders, a new view. Without
/// it all of that comes with the next heartbeat in turn.
pub(crate) async fn follow_news(cluster: Arc<Cluster>, coordinator: Address, security: Security) {
    let mut line = None;
    loop {
        match ask(&coordinator, &security, &mut line, MemberRequest::News(cluster.id)).await {
            Ok(ControlReply::Done) => cluster.want_news(),
            Ok(ControlReply::Unchanged) => {}
            // Heartbeats say that it is away.
            Ok(_) | Err(_) => forebay_runtime::time::sleep(PAUSE).await,
        }
    }
}
