//! Who refreshes a dataset, and how the last refresh ended: an object in its folder, which only who holds it overwrites.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_types::{Error, ErrorKind, ForebayPath, Result, VersionTag};

use crate::Shards;
use crate::open::below;

/// Its name.
const NAME: &str = "refresh";
/// Bytes of it at most.
const BYTES_MAX: u64 = 1 << 20;
/// Who ends while he refreshes keeps others from it so long.
const HELD_FOR: Duration = Duration::from_secs(600);
/// Who refreshes says so anew after this.
const SAID_AFTER: Duration = Duration::from_secs(60);
/// Errors of objects that are kept, at most, and characters of each.
const ERRORS_MAX: usize = 16;
const ERROR_CHARS_MAX: usize = 1000;

/// How it stands with the refreshes of a dataset. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct RefreshState {
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
}

impl RefreshState {
    /// How long ago the last refresh ended that saw all objects; none where none has.
    pub fn age(&self) -> Option<Duration> {
        (self.done_ms > 0).then(|| Duration::from_millis(now_ms().saturating_sub(self.done_ms).max(0).unsigned_abs()))
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
    /// `Retry` where another process has it.
    pub(super) async fn take(client: &Client, path: &ForebayPath) -> Result<Self> {
        let at = below(path, NAME)?;
        let (state, condition) = match read(client, &at).await? {
            Some((state, tag)) => (state, PutCondition::Version(tag)),
            None => (RefreshState::default(), PutCondition::Absent),
        };
        if state.is_held() {
            return Err(busy(path));
        }
        let state = RefreshState { held_until_ms: held_until(), ..state };
        let said = forebay_runtime::now();
        match write(client, &at, &state, condition).await {
            Ok(tag) => Ok(Self { client: client.clone(), at, tag, said, state }),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(busy(path)),
            Err(error) => Err(error),
        }
    }

    /// Says that it is still needed, where that was said a while ago. `Conflict` where another process has it by now.
    pub(super) async fn renew(&mut self) -> Result<()> {
        if self.said.elapsed() < SAID_AFTER {
            return Ok(());
        }
        self.state.held_until_ms = held_until();
        self.said = forebay_runtime::now();
        self.say().await
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

impl Shards {
    /// How it stands with refreshes; none where it follows nothing, or was not refreshed yet.
    pub async fn refresh_state(&self) -> Result<Option<RefreshState>> {
        if self.dataset.following.is_none() {
            return Ok(None);
        }
        Ok(read(&self.client, &below(&self.path, NAME)?).await?.map(|(state, _)| state))
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

fn held_until() -> i64 {
    now_ms().saturating_add(HELD_FOR.as_millis() as i64)
}

fn now_ms() -> i64 {
    let since = forebay_runtime::system_time().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
