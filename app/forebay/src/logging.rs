//! What a process says: its log on the standard error, and the audit log in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use forebay_transport::{AUDIT, Seldom, begin_audit};
use forebay_types::Error;
use tracing::Level;
use tracing_log::{AsLog, LogTracer};
use tracing_subscriber::filter::{FilterExt, LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Filter, SubscriberExt};
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::config::LogFormat;
use crate::exit::{Failure, Outcome};

/// How often it is looked whether the audit log was moved away.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What of libraries is said unasked: Ballista tells of each task, and of each try to reach a scheduler that is away.
const OF_LIBRARIES: &str = "ballista_core=error,ballista_executor=error,ballista_scheduler=error";

/// Is never asked for traces: DataFusion prints these on the standard output, among the rows.
const PRINTS: &str = "datafusion_physical_plan::aggregates::grouped_topk_stream";

/// Logs to the standard error: what `--log` (or the configuration) says, else `RUST_LOG`, else `default`. With a file for it,
/// whoever changes something or is refused is written there.
pub(crate) fn start(configured: Option<&str>, default: &str, format: LogFormat, audit: Option<&Path>) -> Outcome {
    let variable = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let default = format!("{default},{OF_LIBRARIES}");
    configured.map_or(Ok(()), check_words)?;
    let text = configured.or(variable.as_deref()).unwrap_or(&default);
    let filter = shown::<Registry>(text)?;
    let shown = lines(format, io::stderr, io::stderr().is_terminal()).with_filter(filter);
    let audit = audit.map(AuditLog::open).transpose()?.map(|log| {
        tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .with_target(false)
            .with_level(false)
            .with_writer(log)
            .with_filter(Targets::new().with_target(AUDIT, Level::INFO))
    });
    if audit.is_some() {
        begin_audit();
    }
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(shown).with(audit))
        .map_err(|error| Error::internal(format!("the log was started before: {error}")))?;
    LogTracer::builder()
        .with_max_level(LevelFilter::current().as_log())
        .ignore_crate(PRINTS)
        .init()
        .map_err(|error| Error::internal(format!("the log of libraries was started before: {error}")))?;
    Ok(())
}

/// Writes what is said, a line each: for people, or as JSON with its fields beside `timestamp`, `level`, `target` and `message`.
fn lines<W>(format: LogFormat, writer: W, colours: bool) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        LogFormat::Text => lines.with_ansi(colours).with_target(false).boxed(),
        LogFormat::Json => {
            lines.with_ansi(false).json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
        }
    }
}

/// Refuses a word that is no level, and that no part of the program is called by: alone it would silence all parts.
fn check_words(text: &str) -> Outcome {
    let is_wrong = |word: &&str| !word.is_empty() && !word.contains(['=', '[', '_', ':']) && word.parse::<LevelFilter>().is_err();
    match text.split(',').map(str::trim).find(is_wrong) {
        Some(word) => Err(Failure::Usage(format!(
            "log filter {text:?}: {word:?} is no level: write error, warn, info, debug, trace or off, or that of a part, as in forebay_worker=debug"
        ))),
        None => Ok(()),
    }
}

/// What is shown: what the text says, but for the audit log.
fn shown<S>(text: &str) -> Outcome<impl Filter<S> + use<S>> {
    let filter = EnvFilter::try_new(text).map_err(|error| Failure::Usage(format!("log filter {text:?}: {error}")))?;
    // One filter of both: of two behind each other the wider one would count where it is asked whether to speak at all.
    Ok(filter.and(Targets::new().with_default(LevelFilter::TRACE).with_target(AUDIT, LevelFilter::OFF)))
}

/// A file that lines are put at the end of, by this user alone. One that is moved away is followed by a new one, so that any
/// rotation of logs works without a signal.
struct AuditLog {
    path: PathBuf,
    open: Mutex<Opened>,
}

struct Opened {
    file: File,
    looked: Instant,
    failing: Seldom,
    /// The last line is there in part.
    is_torn: bool,
}

impl AuditLog {
    fn open(path: &Path) -> Outcome<Self> {
        let file = append(path).map_err(|error| {
            Failure::Usage(format!(
                "audit-log {}: {error}: name a file in a folder that is there and may be written",
                path.display()
            ))
        })?;
        let open = Opened { file, looked: forebay_runtime::now(), failing: Seldom::default(), is_torn: false };
        Ok(Self { path: path.to_path_buf(), open: Mutex::new(open) })
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

impl Opened {
    fn follow(&mut self, path: &Path) -> io::Result<()> {
        if self.looked.elapsed() < LOOK_EVERY {
            return Ok(());
        }
        self.looked = forebay_runtime::now();
        let (own, named) = (self.file.metadata()?, fs::metadata(path).ok());
        if named.is_none_or(|named| (named.dev(), named.ino()) != (own.dev(), own.ino())) {
            (self.file, self.is_torn) = (append(path)?, false);
        }
        Ok(())
    }

    /// Puts a line at the end: in one piece where there is room, or two processes' lines might mix.
    fn add(&mut self, path: &Path, line: &[u8]) -> io::Result<()> {
        self.follow(path)?;
        if self.is_torn {
            self.file.write_all(b"\n")?;
            self.is_torn = false;
        }
        let mut left = line;
        while !left.is_empty() {
            match self.file.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_torn = left.len() < line.len();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

impl Write for &AuditLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (added, now) = (open.add(&self.path, line), forebay_runtime::now());
        let lost = if added.is_ok() { open.failing.untold(now) } else { open.failing.happens(now) };
        drop(open);
        let path = self.path.display();
        match (&added, lost) {
            (_, None) => {}
            (Ok(()), Some(lines)) => tracing::error!(%path, lines, "the audit log can be written again, and lines are missing"),
            (Err(error), Some(lines)) => {
                tracing::error!(%path, %error, lines, "the audit log can't be written, and what is done goes on without: make room there");
            }
        }
        added.map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for AuditLog {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use tracing::Subscriber as _;

    use super::*;

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(std::sync::Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_word_that_is_no_level_is_refused() {
        for text in ["info", "OFF", "info,forebay_worker=debug", "slow_query", "h2=warn, debug", "forebay_worker[query]", ""] {
            assert!(check_words(text).is_ok(), "{text}");
        }
        for text in ["warning", "inof", "info,debgu"] {
            let Err(Failure::Usage(said)) = check_words(text) else { panic!("{text} is no level") };
            assert!(said.contains("is no level") && said.contains("forebay_worker=debug"), "{said}");
        }
    }

    #[test]
    fn a_line_of_json_has_what_is_said_and_its_facts() {
        let said = |format| {
            let kept = Kept::default();
            let writer = kept.clone();
            let log = tracing_subscriber::registry().with(lines(format, move || writer.clone(), false));
            tracing::subscriber::with_default(log, || tracing::warn!(worker = 7, "worker \"lost\"\nand gone"));
            String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
        };
        let json = said(LogFormat::Json);
        assert_eq!(json.lines().count(), 1, "{json}");
        let line: serde_json::Value = serde_json::from_str(&json).unwrap();
        let facts = (line["level"].as_str(), line["message"].as_str(), line["worker"].as_u64());
        assert_eq!(facts, (Some("WARN"), Some("worker \"lost\"\nand gone"), Some(7)));
        assert!(line["timestamp"].is_string() && line["target"].is_string());
        let text = said(LogFormat::Text);
        assert!(text.contains(" WARN ") && !text.contains('{'), "{text}");
    }

    #[test]
    fn nobody_speaks_who_is_not_heard() {
        // What the log itself says: `tracing::enabled!` remembers what logs of other tests, on other threads, have wanted.
        let loudest = |text: &str| {
            let shown = shown(text).unwrap_or_else(|_| panic!("{text} is a filter"));
            tracing_subscriber::registry().with(tracing_subscriber::fmt::layer().with_filter(shown)).max_level_hint()
        };
        assert_eq!(loudest("warn"), Some(LevelFilter::WARN));
        assert_eq!(loudest("trace"), Some(LevelFilter::TRACE));
    }

    #[test]
    fn an_audit_log_without_room_is_told_of_once_a_minute() {
        let log = AuditLog::open(Path::new("/dev/full")).unwrap_or_else(|_| panic!("it can be opened"));
        let kept = Kept::default();
        let writer = kept.clone();
        let shown = tracing_subscriber::registry().with(lines(LogFormat::Text, move || writer.clone(), false));
        tracing::subscriber::with_default(shown, || {
            for _ in 0..3 {
                (&log).write_all(b"one\n").unwrap_err();
            }
        });
        let said = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("ERROR") && said.contains("/dev/full") && said.contains("make room"), "{said}");
    }

    #[test]
    fn a_line_that_was_cut_off_is_ended_before_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let log = AuditLog::open(&path).unwrap_or_else(|_| panic!("it can be opened"));
        (&log).write_all(b"half a").unwrap();
        log.open.lock().unwrap().is_torn = true;
        (&log).write_all(b"two\n").unwrap();
        (&log).write_all(b"three\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"half a\ntwo\nthree\n");
    }

    #[test]
    fn a_log_that_is_moved_away_is_followed_by_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("audit.log"), folder.path().join("audit.log.1"));
        let log = AuditLog::open(&path).unwrap_or_else(|_| panic!("it can be opened"));
        (&log).write_all(b"one\n").unwrap();
        fs::rename(&path, &moved).unwrap();
        log.open.lock().unwrap().looked = forebay_runtime::now().checked_sub(LOOK_EVERY).unwrap();
        (&log).write_all(b"two\n").unwrap();
        assert_eq!((fs::read(&moved).unwrap(), fs::read(&path).unwrap()), (b"one\n".to_vec(), b"two\n".to_vec()));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }
}
