//! The engine of each caller, made with the rights of its credential, kept a while, and let go when that stands no more.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_sql::{Engine, SessionSettings};
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
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// How long a call waits for such a look at most: a coordinator that is away would hold up each by a minute.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// Callers of one connection whose settings are remembered: most have one, that of a proxy many.
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
}

/// What was `SET` by a connection, of each of its callers: no matter of other connections, and there for as long as it is. All calls that
/// come by the connection have the same one; the caller who was here last is the last one. The engines of callers go when these are forgotten,
/// however long their connections last.
#[derive(Clone, Default)]
pub(crate) struct Connection(Arc<Mutex<Vec<(Arc<str>, SessionSettings)>>>);

impl Connection {
    /// The engine of a caller, with the settings that it has here.
    fn session(&self, shown: &Shown, engine: &Engine) -> Engine {
        let mut sessions = self.0.lock();
        let session = match sessions.iter().position(|(of, _)| *of == shown.0) {
            Some(at) => engine.with_session_settings(&sessions.remove(at).1),
            None => engine.session(),
        };
        if sessions.len() >= SESSIONS_MAX {
            sessions.remove(0);
        }
        sessions.push((Arc::clone(&shown.0), session.session_settings()));
        assert!(sessions.len() <= SESSIONS_MAX, "{} sessions are one connection's", sessions.len());
        let own = sessions.iter().filter(|(of, _)| *of == shown.0).count();
        assert_eq!(own, 1, "sessions that a caller has by one connection");
        session
    }
}

impl Callers {
    pub(crate) fn new(connect: Connect) -> Self {
        Self { connect, known: Mutex::default() }
    }

    /// The engine of who shows this, with the settings of the connection. `Unauthenticated` when it is nobody's.
    pub(crate) async fn engine(&self, shown: &Shown, connection: Option<&Connection>) -> Result<Engine, Status> {
        let known = self.known.lock().get(&shown.0).map(|known| (known.engine.clone(), known.looked.elapsed() < LOOK_AFTER));
        if let Some((engine, is_fresh)) = known {
            if !is_fresh && is_gone(&engine).await {
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
    fn keep(&self, shown: &Shown, engine: Engine, looked: bool, connection: Option<&Connection>) -> Engine {
        let mut known = self.known.lock();
        if known.len() >= CALLERS_MAX && !known.contains_key(&shown.0) {
            let oldest = known.iter().min_by_key(|(_, known)| known.looked).map(|(shown, _)| Arc::clone(shown));
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        assert!(known.len() < CALLERS_MAX || known.contains_key(&shown.0), "{} callers are known, and one comes", known.len());
        let of = known.entry(Arc::clone(&shown.0)).or_insert_with(|| Known { engine, looked: forebay_runtime::now() });
        if looked {
            of.looked = forebay_runtime::now();
        }
        if let Some(connection) = connection { connection.session(shown, &of.engine) } else { of.engine.clone() }
    }
}

/// Whether a caller's credential stands no more, as far as that is known in time.
async fn is_gone(engine: &Engine) -> bool {
    let looked = forebay_runtime::time::timeout(LOOK_WITHIN, engine.check_caller()).await;
    matches!(looked, Ok(Err(error)) if error.kind() == ErrorKind::Denied)
}

fn unknown() -> Status {
    if is_audited() {
        let refused = Error::denied("the token is none of this cluster, has expired or was taken away");
        tell("unknown", "", &Deed { port: "sql", what: "call", on: String::new() }, Some(&refused));
    }
    Status::unauthenticated("this token is none of this cluster, has expired or was taken away: `forebay token add` makes one")
}

#[cfg(test)]
mod tests {
    use forebay_sql::EngineSettings;

    use super::*;

    fn callers() -> Callers {
        let connect: Connect =
            Arc::new(|_| Box::pin(async { Ok(Engine::over_object_store(Vec::new(), EngineSettings::default())) }));
        Callers::new(connect)
    }

    /// A setting, as a connection has it.
    async fn batch_size(callers: &Callers, shown: &Shown, connection: &Connection) -> String {
        let engine = callers.engine(shown, Some(connection)).await.unwrap();
        let mut query = engine.execute("show datafusion.execution.batch_size").await.unwrap();
        format!("{:?}", query.collect().await.unwrap())
    }

    #[tokio::test]
    async fn what_one_connection_sets_is_no_matter_of_the_others() {
        let (callers, shown) = (callers(), Shown("a secret of the tests".into()));
        let (one, other) = (Connection::default(), Connection::default());
        let before = batch_size(&callers, &shown, &one).await;
        let engine = callers.engine(&shown, Some(&one)).await.unwrap();
        engine.execute("set datafusion.execution.batch_size = 77").await.unwrap();
        assert!(batch_size(&callers, &shown, &one).await.contains("77") && !before.contains("77"));
        assert_eq!(batch_size(&callers, &shown, &other).await, before);
        // Views are of all.
        engine.execute("create view v as select 1 as one").await.unwrap();
        callers.engine(&shown, Some(&other)).await.unwrap().execute("select one from v").await.unwrap();
    }

    #[tokio::test]
    async fn what_is_set_holds_until_the_connection_ends_however_many_others_there_are() {
        let (callers, shown) = (callers(), Shown("a secret of the tests".into()));
        let connections: Vec<_> = (0..100).map(|_| Connection::default()).collect();
        for (number, connection) in connections.iter().enumerate() {
            let engine = callers.engine(&shown, Some(connection)).await.unwrap();
            engine.execute(&format!("set datafusion.execution.batch_size = {}", 7_000 + number)).await.unwrap();
        }
        // Also where the caller was forgotten meanwhile.
        callers.known.lock().clear();
        for (number, connection) in connections.iter().enumerate() {
            let set = batch_size(&callers, &shown, connection).await;
            assert!(set.contains(&(7_000 + number).to_string()), "{number}: {set}");
        }
    }

    #[tokio::test]
    async fn a_connection_of_many_callers_remembers_those_who_came_last() {
        let engine = Engine::over_object_store(Vec::new(), EngineSettings::default());
        let (connection, caller) = (Connection::default(), |number: usize| Shown(format!("caller {number}").into()));
        (0..=SESSIONS_MAX).for_each(|number| drop(connection.session(&caller(number), &engine)));
        let sessions = connection.0.lock();
        assert_eq!(sessions.len(), SESSIONS_MAX);
        assert!(sessions.iter().all(|(of, _)| *of != caller(0).0));
    }
}
