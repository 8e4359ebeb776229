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
use crate::incoming::ConnectionId;
use crate::status::status;

/// Callers that are known at a time; each has a client and an engine of its own.
const CALLERS_MAX: usize = 64;
/// How long a caller is known without another look whether its credential still stands.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Sessions of a caller that are remembered: a connection that is used again after so many others begins with the settings of the start.
const SESSIONS_MAX: usize = 64;

/// Makes the engine of who shows a credential, which reads and writes with that one's rights and no others. `Denied` when
/// nobody is let in with it.
pub type Connect = Arc<dyn Fn(Credential) -> BoxFuture<'static, Result<Engine>> + Send + Sync>;

/// Who calls, and the engine of each.
pub(crate) struct Callers {
    connect: Connect,
    known: Mutex<HashMap<Arc<str>, Known>>,
}

struct Known {
    engine: Engine,
    looked: Instant,
    /// One a connection, since what is `SET` by one is no matter of the others; the last one used is the last one here.
    sessions: Vec<(ConnectionId, Engine)>,
}

impl Known {
    fn new(engine: Engine) -> Self {
        Self { engine, looked: forebay_runtime::now(), sessions: Vec::new() }
    }

    /// The session of a connection.
    fn session(&mut self, connection: Option<ConnectionId>) -> Engine {
        let Some(connection) = connection else { return self.engine.clone() };
        let session = match self.sessions.iter().position(|(of, _)| *of == connection) {
            Some(at) => self.sessions.remove(at).1,
            None => self.engine.session(),
        };
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.remove(0);
        }
        self.sessions.push((connection, session.clone()));
        assert!(self.sessions.len() <= SESSIONS_MAX, "{} sessions are one caller's", self.sessions.len());
        session
    }
}

impl Callers {
    pub(crate) fn new(connect: Connect) -> Self {
        Self { connect, known: Mutex::default() }
    }

    /// The engine of who shows this, with the settings of the connection. `Unauthenticated` when it is nobody's.
    pub(crate) async fn engine(&self, shown: &Shown, connection: Option<ConnectionId>) -> Result<Engine, Status> {
        let known = self.known.lock().get(&shown.0).map(|known| (known.engine.clone(), known.looked.elapsed() < LOOK_AFTER));
        if let Some((engine, is_fresh)) = known {
            if !is_fresh && engine.check_caller().await.is_err_and(|error| error.kind() == ErrorKind::Denied) {
                self.known.lock().remove(&shown.0);
                return Err(unknown());
            }
            // A coordinator that is away takes nothing from anybody.
            return Ok(self.keep(shown, engine, !is_fresh, connection));
        }
        // A text that is no token's is the administrator's of the configuration, or the owner's.
        let mut candidates = [Credential::token(&shown.0).ok(), None];
        if !shown.0.starts_with("fb.") {
            candidates[1] = Credential::owner(&shown.0).ok();
        }
        for credential in candidates.into_iter().flatten() {
            match (self.connect)(credential).await {
                Ok(engine) => return Ok(self.keep(shown, engine, true, connection)),
                Err(error) if error.kind() == ErrorKind::Denied => {}
                Err(error) => return Err(status(&error)),
            }
        }
        Err(unknown())
    }

    /// Remembers who was let in, `looked` now or before; the engine with the settings of the connection.
    fn keep(&self, shown: &Shown, engine: Engine, looked: bool, connection: Option<ConnectionId>) -> Engine {
        let mut known = self.known.lock();
        if known.len() >= CALLERS_MAX && !known.contains_key(&shown.0) {
            let oldest = known.iter().min_by_key(|(_, known)| known.looked).map(|(shown, _)| Arc::clone(shown));
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        assert!(known.len() < CALLERS_MAX || known.contains_key(&shown.0), "{} callers are known, and one comes", known.len());
        let of = known.entry(Arc::clone(&shown.0)).or_insert_with(|| Known::new(engine));
        if looked {
            of.looked = forebay_runtime::now();
        }
        of.session(connection)
    }
}

fn unknown() -> Status {
    if is_audited() {
        let refused = Error::denied("the token is none of this cluster, or was taken away");
        tell("unknown", "", &Deed { port: "sql", what: "call", on: String::new() }, Some(&refused));
    }
    Status::unauthenticated("this token is none of this cluster, or was taken away: `forebay token add` makes one")
}

#[cfg(test)]
mod tests {
    use forebay_sql::EngineSettings;

    use super::*;

    #[tokio::test]
    async fn what_one_connection_sets_is_no_matter_of_the_others() {
        let connect: Connect =
            Arc::new(|_| Box::pin(async { Ok(Engine::over_object_store(Vec::new(), EngineSettings::default())) }));
        let (callers, shown) = (Callers::new(connect), Shown("a secret of the tests".into()));
        let zone = async |connection| {
            let engine = callers.engine(&shown, Some(connection)).await.unwrap();
            let mut query = engine.execute("show datafusion.execution.time_zone").await.unwrap();
            format!("{:?}", query.collect().await.unwrap())
        };
        let (one, other) = (ConnectionId::next(), ConnectionId::next());
        let before = zone(one).await;
        let engine = callers.engine(&shown, Some(one)).await.unwrap();
        engine.execute("set datafusion.execution.time_zone = '+05:00'").await.unwrap();
        assert!(zone(one).await.contains("+05:00") && !before.contains("+05:00"));
        assert_eq!(zone(other).await, before);
        // Views are of all.
        engine.execute("create view v as select 1 as one").await.unwrap();
        callers.engine(&shown, Some(other)).await.unwrap().execute("select one from v").await.unwrap();
    }

    #[tokio::test]
    async fn sessions_that_are_not_used_any_more_are_forgotten() {
        let engine = Engine::over_object_store(Vec::new(), EngineSettings::default());
        let mut known = Known::new(engine);
        let first = ConnectionId::next();
        known.session(Some(first));
        (0..SESSIONS_MAX).for_each(|_| drop(known.session(Some(ConnectionId::next()))));
        assert_eq!(known.sessions.len(), SESSIONS_MAX);
        assert!(known.sessions.iter().all(|(of, _)| *of != first));
    }
}
