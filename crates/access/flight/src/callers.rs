//! The engine of each caller, made with the rights of its credential, kept a while, and let go when that stands no more.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_sql::Engine;
use forebay_transport::{Credential, Deed, is_audited, tell};
use forebay_types::{Error, ErrorKind, Result};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tonic::Status;

use crate::auth::Shown;
use crate::status::status;

/// Callers that are known at a time; each has a client and an engine of its own.
const CALLERS_MAX: usize = 64;
/// How long a caller is known without another look whether its credential still stands.
const LOOK_AFTER: Duration = Duration::from_secs(5);

/// Makes the engine of who shows a credential, which reads and writes with that one's rights and no others. `Denied` when
/// nobody is let in with it.
pub type Connect = Arc<dyn Fn(Credential) -> BoxFuture<'static, Result<Engine>> + Send + Sync>;

/// Who calls, and the engine of each.
pub(crate) struct Callers {
    connect: Connect,
    known: Mutex<HashMap<Arc<str>, Known>>,
}

#[derive(Clone)]
struct Known {
    engine: Engine,
    looked: Instant,
}

impl Callers {
    pub(crate) fn new(connect: Connect) -> Self {
        Self { connect, known: Mutex::default() }
    }

    /// The engine of who shows this. `Unauthenticated` when it is nobody's.
    pub(crate) async fn engine(&self, shown: &Shown) -> Result<Engine, Status> {
        let known = self.known.lock().get(&shown.0).cloned();
        if let Some(known) = known {
            if known.looked.elapsed() < LOOK_AFTER {
                return Ok(known.engine);
            }
            match known.engine.check_caller().await {
                Err(error) if error.kind() == ErrorKind::Denied => {
                    self.known.lock().remove(&shown.0);
                    return Err(unknown());
                }
                // A coordinator that is away takes nothing from anybody.
                _ => return Ok(self.keep(shown, known.engine)),
            }
        }
        // A text that is no token's is the administrator's of the configuration, or the owner's.
        let mut candidates = [Credential::token(&shown.0).ok(), None];
        if !shown.0.starts_with("fb.") {
            candidates[1] = Credential::owner(&shown.0).ok();
        }
        for credential in candidates.into_iter().flatten() {
            match (self.connect)(credential).await {
                Ok(engine) => return Ok(self.keep(shown, engine)),
                Err(error) if error.kind() == ErrorKind::Denied => {}
                Err(error) => return Err(status(&error)),
            }
        }
        Err(unknown())
    }

    fn keep(&self, shown: &Shown, engine: Engine) -> Engine {
        let mut known = self.known.lock();
        if known.len() >= CALLERS_MAX && !known.contains_key(&shown.0) {
            let oldest = known.iter().min_by_key(|(_, known)| known.looked).map(|(shown, _)| Arc::clone(shown));
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        known.insert(Arc::clone(&shown.0), Known { engine: engine.clone(), looked: forebay_runtime::now() });
        engine
    }
}

fn unknown() -> Status {
    if is_audited() {
        let refused = Error::denied("the token is none of this cluster, or was taken away");
        tell("unknown", "", &Deed { port: "sql", what: "call", on: String::new() }, Some(&refused));
    }
    Status::unauthenticated("this token is none of this cluster, or was taken away: `forebay token add` makes one")
}
