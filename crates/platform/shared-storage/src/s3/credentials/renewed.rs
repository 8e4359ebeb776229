//! Credentials that are renewed while requests are signed with them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_runtime::time::timeout;
use forebay_runtime::{now, system_time};
use forebay_types::{Error, Result};
use object_store::aws::AwsCredential;
use parking_lot::Mutex;

use super::exchange::{Exchange, Fetched};
use super::machine::FETCH_TIMEOUT;
use super::profile::{Environment, Profile};
use super::source::Source;

/// So long before credentials run out new ones are asked for, or half of their life where that is shorter.
const AHEAD: Duration = Duration::from_secs(300);
/// How often is looked whether those that don't run out stand there still.
const LOOK: Duration = Duration::from_secs(60);
/// After a failure nobody is asked again for so long, where the old ones are still good.
const PAUSE: Duration = Duration::from_secs(30);

/// The credentials of a profile.
pub(super) struct Renewed {
    env: Environment,
    /// None for that of the environment.
    profile: Option<String>,
    exchange: Exchange,
    held: Mutex<Option<Held>>,
    /// Of one who asks for new ones.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Held {
    credential: Arc<AwsCredential>,
    since: Instant,
    renew_at: Instant,
    until: Option<Instant>,
}

impl Held {
    fn new(fetched: Fetched) -> Self {
        let now = now();
        let life = fetched.until.map(|until| until.duration_since(system_time()).unwrap_or_default());
        let renew_in = life.map_or(LOOK, |life| life.saturating_sub(AHEAD).max(life / 2));
        let until = life.map(|life| now + life);
        Self { credential: Arc::new(fetched.credential), since: now, renew_at: now + renew_in, until }
    }

    fn is_good(&self) -> bool {
        self.until.is_none_or(|until| now() < until)
    }
}

impl Renewed {
    pub(super) fn new(env: Environment, profile: Option<String>, exchange: Exchange) -> Self {
        Self { env, profile, exchange, held: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// What to sign with now. Who comes while others ask for new ones gets the old ones, as long as those are good.
    pub(super) async fn get(&self) -> Result<Arc<AwsCredential>> {
        if let Some(credential) = self.fresh() {
            return Ok(credential);
        }
        let old = || self.held.lock().clone().filter(Held::is_good);
        let _turn = match (self.turn.try_lock(), old()) {
            (Ok(turn), _) => turn,
            (Err(_), Some(old)) => return Ok(old.credential),
            (Err(_), None) => self.turn.lock().await,
        };
        if let Some(credential) = self.fresh() {
            return Ok(credential);
        }
        let fetched = timeout(FETCH_TIMEOUT, self.fetch()).await.unwrap_or_else(|_| Err(Error::denied("no answer for 10 s")));
        match (fetched, old()) {
            (Ok(fetched), _) => {
                let held = Held::new(fetched);
                let credential = Arc::clone(&held.credential);
                *self.held.lock() = Some(held);
                Ok(credential)
            }
            (Err(error), Some(old)) => {
                tracing::warn!(%error, "credentials can't be renewed: the old ones are good for a while");
                *self.held.lock() = Some(Held { renew_at: now() + PAUSE, ..old.clone() });
                Ok(old.credential)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Shared storage says that these have run out, though they have not by this machine's clock: that one is behind the clock of who handed
    /// them out. Whether there are others by now, or may be.
    pub(super) fn ran_out(&self, of: &AwsCredential) -> bool {
        let mut held = self.held.lock();
        let Some(same) = held.as_ref().filter(|held| *held.credential == *of) else { return true };
        // New ones are refused for another reason.
        if now().saturating_duration_since(same.since) < PAUSE {
            return false;
        }
        *held = None;
        true
    }

    fn fresh(&self) -> Option<Arc<AwsCredential>> {
        let held = self.held.lock();
        let held = held.as_ref().filter(|held| now() < held.renew_at && held.is_good())?;
        Some(Arc::clone(&held.credential))
    }

    /// The files are read each time: who changes them starts nothing anew.
    async fn fetch(&self) -> Result<Fetched> {
        let profile =
            Profile::find_in(&self.env, self.profile.as_deref())?.ok_or_else(|| Error::denied("the profile is gone"))?;
        let context = |error: Error| error.context(format!("profile {:?}", profile.name));
        let source = Source::of(&self.env, &profile)?.ok_or_else(|| context(Error::denied("it has no credentials any more")))?;
        let fetched = self.exchange.fetch(&source).await.map_err(context)?;
        super::check(&fetched.credential, &format!("profile {:?}", profile.name))?;
        Ok(fetched)
    }
}
