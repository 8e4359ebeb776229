//! Which of several schedulers serves: the coordinator knows one, the others stand by, and executors go to the one that is known.

use std::time::Duration;

use forebay_client::Client;
use forebay_runtime::time::Instant;
use tokio::sync::watch;

/// How often the coordinator is told, or asked.
const SAY: Duration = Duration::from_secs(1);
/// A standby says that it serves when the coordinator has known of none for so long: after a restart of the coordinator the one
/// that serves comes first.
const CLAIM_AFTER: Duration = Duration::from_secs(3);

/// What a scheduler takes itself for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Standing {
    Serves,
    /// Since when the coordinator knows of no other one.
    StandsBy {
        alone_since: Option<Instant>,
    },
}

impl Standing {
    /// What one is that has just been started, at `own`, and has heard of `known`.
    fn at_start(own: &str, known: Option<&str>) -> Self {
        match known {
            Some(other) if other != own => Self::StandsBy { alone_since: None },
            _ => Self::Serves,
        }
    }

    /// What it is when it hears who is known.
    fn hears(self, own: &str, known: Option<&str>, now: Instant) -> Self {
        match (self, known) {
            (_, Some(known)) if known == own => Self::Serves,
            (_, Some(_)) => Self::StandsBy { alone_since: None },
            (Self::Serves, None) => Self::Serves,
            (Self::StandsBy { alone_since: Some(since) }, None) if now - since >= CLAIM_AFTER => Self::Serves,
            (Self::StandsBy { alone_since }, None) => Self::StandsBy { alone_since: alone_since.or(Some(now)) },
        }
    }
}

/// Says to the coordinator that the scheduler is at `own`, or stands by; for ever.
pub async fn announce(client: Client, own: String) {
    let known = client.scheduler().await.ok().flatten();
    let mut standing = Standing::at_start(&own, known.as_deref());
    tell(standing, known.as_deref());
    loop {
        let known = match standing {
            Standing::Serves => client.serve_as_scheduler(own.clone()).await,
            Standing::StandsBy { .. } => client.scheduler().await,
        };
        match known {
            Ok(known) => {
                let next = standing.hears(&own, known.as_deref(), forebay_runtime::time::instant());
                if std::mem::discriminant(&next) != std::mem::discriminant(&standing) {
                    tell(next, known.as_deref());
                }
                standing = next;
            }
            Err(error) => tracing::debug!(%error, "the coordinator does not know of this scheduler"),
        }
        forebay_runtime::time::sleep(SAY).await;
    }
}

fn tell(standing: Standing, known: Option<&str>) {
    match standing {
        Standing::Serves => tracing::info!("this scheduler serves"),
        Standing::StandsBy { .. } => tracing::info!(serves = known, "another scheduler serves: standing by"),
    }
}

/// Says where the scheduler is that the coordinator knows, as often as that is another one.
pub async fn follow(client: Client, scheduler: watch::Sender<String>) {
    loop {
        forebay_runtime::time::sleep(SAY).await;
        // What the coordinator does not know, or can't say now, changes nothing.
        let Ok(Some(known)) = client.scheduler().await else { continue };
        let is_another = |at: &mut String| {
            *at != known && {
                at.clone_from(&known);
                true
            }
        };
        if scheduler.send_if_modified(is_another) {
            tracing::info!(scheduler = known, "asks another scheduler for tasks");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_serves_until_it_hears_of_another_and_a_standby_when_it_hears_of_none() {
        let began = forebay_runtime::time::instant();
        let at = |secs: u64| began + Duration::from_secs(secs);
        assert_eq!(Standing::at_start("a:1", None), Standing::Serves);
        assert_eq!(Standing::at_start("a:1", Some("a:1")), Standing::Serves, "started again");
        let mut standing = Standing::at_start("a:1", Some("b:1"));
        for (secs, known, serves) in [
            (1, Some("b:1"), false),
            (2, None, false),
            (3, Some("b:1"), false),
            (4, None, false),
            (6, None, false),
            (7, None, true),
            (8, None, true),
            (9, Some("a:1"), true),
            (10, Some("b:1"), false),
            (11, Some("a:1"), true),
        ] {
            standing = standing.hears("a:1", known, at(secs));
            assert_eq!(standing == Standing::Serves, serves, "at {secs} s");
        }
    }
}
