//! Who refreshes a dataset, and how the last refresh ended: an object in its folder, which only who holds it overwrites.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_types::{Error, ErrorKind, ForebayPath, Result, VersionTag};

use super::sources::Sources;
use crate::Shards;
use crate::open::below;

const NAME: &str = "refresh";
const BYTES_MAX: u64 = 4 << 20;
/// Who ends while he refreshes keeps others from it so long. Where clocks differ by more, two may be at it: that costs work and no records.
const HELD_FOR: Duration = Duration::from_secs(600);
/// Who refreshes says so anew after this.
const SAID_AFTER: Duration = Duration::from_secs(60);
/// Errors of objects that are kept, at most, and characters of each.
const ERRORS_MAX: usize = 16;
const ERROR_CHARS_MAX: usize = 1000;
/// Objects that could not be read are remembered, so many, and so long: another version of Forebay may read them.
const REFUSED_MAX: usize = 128;
const REFUSED_FOR: Duration = Duration::from_secs(24 * 3600);
/// Bytes of such an object's path and version together.
const REFUSED_BYTES_MAX: usize = 2048;

/// How it stands with the refreshes of a dataset. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, Default, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct RefreshState {
    /// What the dataset's sources are kept under that all of it is of: another one in the same folder was not refreshed yet.
    pub following: String,
    /// Somebody refreshes it, until then if he does not say so again; 0 where nobody does.
    pub held_until_ms: i64,
    /// When the last refresh ended that saw all objects; 0 where none has.
    pub done_ms: i64,
    /// Objects that there were then.
    pub objects: u64,
    /// Records that it wrote or deleted.
    pub changes: u64,
    /// What kept the last refresh from taking over all: of objects that can't be read what was read of them before stays.
    pub errors: Vec<String>,
    /// Objects that can't be read, as far as they are remembered: they are not fetched again.
    pub refused: Vec<RefusedObject>,
}

/// A version of an object that can't be read.
#[derive(Clone, Debug, Default, PartialEq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
pub struct RefusedObject {
    /// Its path.
    pub path: String,
    /// The version.
    pub tag: String,
    /// Why.
    pub error: String,
    /// When it was read.
    pub read_ms: i64,
}

/// What a dataset follows.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct Follows {
    /// Objects, patterns of their names and folders.
    pub following: Vec<String>,
    /// How often workers look whether these have changed, in milliseconds; 0 where nobody looks by himself.
    pub every_ms: u64,
    /// From how many objects its records came.
    pub objects: usize,
    /// How the last refresh ended; none where it was not refreshed yet.
    pub refresh: Option<RefreshState>,
}

impl Follows {
    /// What a dataset follows; none where it follows nothing.
    pub async fn of(shards: &Shards) -> Result<Option<Self>> {
        let Some(of) = &shards.dataset.following else { return Ok(None) };
        let (sources, refresh) = (Sources::read(shards).await?, RefreshState::read(shards).await?);
        Ok(Some(Self { following: of.from.clone(), every_ms: of.every_ms, objects: sources.objects(), refresh }))
    }
}

impl RefreshState {
    /// How it stands with refreshes of a dataset; none where it follows nothing, or was not refreshed yet.
    pub async fn read(shards: &Shards) -> Result<Option<Self>> {
        let Some(following) = &shards.dataset.following else { return Ok(None) };
        let read = read(&shards.client, &below(&shards.path, NAME)?).await?;
        Ok(read.map(|(state, _)| state).filter(|state| state.following == following.name))
    }

    /// How long ago the last refresh ended that saw all objects; none where none has.
    pub fn age(&self) -> Option<Duration> {
        (self.done_ms > 0).then(|| Duration::from_millis(now_ms().saturating_sub(self.done_ms).max(0).unsigned_abs()))
    }

    /// The same of the dataset with these sources: nothing of what is known of another one that was in its folder.
    fn of(self, following: &str) -> Self {
        match self.following == following {
            true => self,
            false => Self { following: following.to_string(), held_until_ms: self.held_until_ms, ..Self::default() },
        }
    }

    /// Why a version of an object can't be read; none where that is not known, or it is to be tried again.
    fn refused(&self, path: &str, tag: &str, now_ms: i64) -> Option<&str> {
        let is_it = |refused: &&RefusedObject| refused.path == path && refused.tag == tag && is_young(refused, now_ms);
        self.refused.iter().find(is_it).map(|refused| refused.error.as_str())
    }

    fn refuse(&mut self, refused: RefusedObject) {
        if refused.path.len() + refused.tag.len() > REFUSED_BYTES_MAX {
            return;
        }
        self.refused.retain(|before| before.path != refused.path && is_young(before, refused.read_ms));
        // What was read may have any number of them.
        let over = (self.refused.len() + 1).saturating_sub(REFUSED_MAX);
        self.refused.drain(..over);
        self.refused.push(refused);
        debug_assert!(self.refused.len() <= REFUSED_MAX, "as many as can be read again");
    }

    /// Whether somebody refreshes it.
    pub fn is_held(&self) -> bool {
        // Beyond that a clock was wrong.
        let rest = self.held_until_ms.saturating_sub(now_ms());
        (1..=2 * HELD_FOR.as_millis() as i64).contains(&rest)
    }
}

/// The right to refresh a dataset, for a while.
pub(super) struct Lease {
    client: Client,
    at: ForebayPath,
    tag: VersionTag,
    said: Instant,
    state: RefreshState,
}

impl Lease {
    /// For the dataset with these sources; `Retry` where another process has it.
    pub(super) async fn take(client: &Client, path: &ForebayPath, following: &str) -> Result<Self> {
        let at = below(path, NAME)?;
        let (state, condition) = match read(client, &at).await? {
            Some((state, tag)) => (state, PutCondition::Version(tag)),
            None => (RefreshState::default(), PutCondition::Absent),
        };
        if state.is_held() {
            return Err(busy(path));
        }
        let state = RefreshState { held_until_ms: held_until(), ..state.of(following) };
        let said = forebay_runtime::now();
        match write(client, &at, &state, condition).await {
            Ok(tag) => Ok(Self { client: client.clone(), at, tag, said, state }),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(busy(path)),
            Err(error) => Err(error),
        }
    }

    /// The dataset was replaced before it was taken, by the one with these sources.
    pub(super) fn turn_to(&mut self, following: &str) {
        self.state = std::mem::take(&mut self.state).of(following);
        assert!(self.state.held_until_ms > 0, "who has it keeps it");
    }

    /// Says that it is still needed, where that was said a while ago. `Conflict` where another process has it by now.
    pub(super) async fn renew(&mut self) -> Result<()> {
        if self.said.elapsed() < SAID_AFTER {
            return Ok(());
        }
        debug_assert!(self.state.held_until_ms > 0, "who renews it has it");
        self.state.held_until_ms = held_until();
        let said = forebay_runtime::now();
        self.say().await?;
        // Who has lost it is told so each time.
        self.said = said;
        Ok(())
    }

    /// Waits for something, and says meanwhile that it is still needed.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T> {
        let mut work = std::pin::pin!(work);
        loop {
            match forebay_runtime::time::timeout(SAID_AFTER, &mut work).await {
                Ok(done) => return Ok(done),
                Err(_) => self.renew().await?,
            }
        }
    }

    /// Why a version of an object can't be read, where that is known.
    pub(super) fn refused(&self, path: &str, tag: &str) -> Option<&str> {
        self.state.refused(path, tag, now_ms())
    }

    /// Has it known that a version of an object can't be read.
    pub(super) fn refuse(&mut self, path: &str, tag: &str, error: &str) {
        let error = error.chars().take(ERROR_CHARS_MAX).collect();
        self.state.refuse(RefusedObject { path: path.to_string(), tag: tag.to_string(), error, read_ms: now_ms() });
    }

    /// Gives it back, and says how the refresh ended.
    pub(super) async fn end(mut self, errors: &[String], done: Option<(u64, u64)>) -> Result<()> {
        self.state.held_until_ms = 0;
        let short = |error: &String| error.chars().take(ERROR_CHARS_MAX).collect::<String>();
        self.state.errors = errors.iter().take(ERRORS_MAX).map(short).collect();
        if let Some((objects, changes)) = done {
            self.state.done_ms = now_ms();
            (self.state.objects, self.state.changes) = (objects, changes);
        }
        self.say().await
    }

    async fn say(&mut self) -> Result<()> {
        self.tag = write(&self.client, &self.at, &self.state, PutCondition::Version(self.tag.clone())).await?;
        Ok(())
    }
}

async fn read(client: &Client, at: &ForebayPath) -> Result<Option<(RefreshState, VersionTag)>> {
    let info = match client.open(at).await {
        Ok(info) => info,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = || Error::corrupt(format!("{at}: it does not say how the last refresh ended: delete it"));
    if info.version.size > BYTES_MAX {
        return Err(damaged());
    }
    let bytes = client.read(client.operation(), &info.version, 0..info.version.size).await?;
    let state = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
    Ok(Some((state, info.version.tag)))
}

async fn write(client: &Client, at: &ForebayPath, state: &RefreshState, condition: PutCondition) -> Result<VersionTag> {
    let bytes = serde_json::to_vec(state).map_err(|error| Error::internal(error.to_string()))?;
    Ok(client.put(at, Bytes::from(bytes), condition).await?.version.tag)
}

fn busy(path: &ForebayPath) -> Error {
    Error::retry(format!(
        "{path}: another process refreshes it, or ended while it did so less than {} s ago: try again",
        HELD_FOR.as_secs()
    ))
}

/// Whether it is known still: not for ever, nor of the future, where a clock was wrong.
fn is_young(refused: &RefusedObject, now_ms: i64) -> bool {
    (0..REFUSED_FOR.as_millis() as i64).contains(&now_ms.saturating_sub(refused.read_ms))
}

fn held_until() -> i64 {
    now_ms().saturating_add(HELD_FOR.as_millis() as i64)
}

fn now_ms() -> i64 {
    let since = forebay_runtime::system_time().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_read_is_known_of_its_version_for_a_while() {
        let refused =
            |path: &str, read_ms| RefusedObject { path: path.into(), tag: "1".into(), error: "no record".into(), read_ms };
        let mut state = RefreshState::default();
        state.refuse(refused("a", 1000));
        assert_eq!(state.refused("a", "1", 2000), Some("no record"));
        let others = [state.refused("a", "2", 2000), state.refused("b", "1", 2000), state.refused("a", "1", 0)];
        assert_eq!(others, [None; 3]);
        let day = REFUSED_FOR.as_millis() as i64;
        assert_eq!(state.refused("a", "1", 1000 + day), None, "it is tried again");
        state.refuse(refused(&"long".repeat(1000), 1000));
        (0..2 * REFUSED_MAX).for_each(|number| state.refuse(refused(&number.to_string(), 2000)));
        assert_eq!(state.refused.len(), REFUSED_MAX);
        assert_eq!(state.refused("a", "1", 2000), None, "the oldest go first");
        // As in an object that somebody has written.
        state.refused.extend((0..9).map(|number| refused(&format!("more {number}"), 2000)));
        state.refuse(refused("last", 2000));
        assert_eq!((state.refused.len(), state.refused("last", "1", 2000)), (REFUSED_MAX, Some("no record")));
        state.refuse(refused("b", 2000 + day));
        assert_eq!(state.refused.len(), 1, "what is to be tried again goes");
        let state = RefreshState { following: "1".into(), held_until_ms: 7, done_ms: 3, ..state };
        assert_eq!(state.clone().of("1"), state);
        let other = state.of("2");
        assert_eq!(
            other,
            RefreshState { following: "2".into(), held_until_ms: 7, ..RefreshState::default() },
            "of another dataset"
        );
    }
}
