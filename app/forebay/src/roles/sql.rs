//! From the configuration to settings of engines: the memory and spilling that all of them share, and what statements may name.

use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use forebay_sql::{EngineMemory, EngineSettings, LocalFiles, QueryMemory, QueryMemorySettings, Reach};
use forebay_transport::Credential;
use forebay_types::{Error, Result, ResultExt};

use crate::config::Config;

/// The folder of the data folder that queries spill to.
const SPILL_FOLDER: &str = "spill";

/// How the SQL of a process runs.
#[derive(Clone, Debug)]
pub(crate) struct SqlPart {
    /// Memory for what all of its queries hold.
    memory_bytes: u64,
    /// Disk that they may spill to.
    spill_bytes: u64,
    /// All else.
    settings: EngineSettings,
}

impl SqlPart {
    /// As it is configured for servers.
    pub(crate) fn of(config: &Config) -> Self {
        let settings = &config.settings;
        let file_roots = settings.file_roots.as_ref().map(|folders| folders.0.clone()).unwrap_or_default();
        let local_files = LocalFiles::Below(file_roots);
        let engine = EngineSettings {
            reach: Reach { direct_stores: settings.direct_stores, local_files, temporary: true },
            distribute_from_bytes: settings.distribute_from.0,
            rows_from_afar: settings.rows_from_afar,
            slow_query: config.slow_query(),
            ..EngineSettings::default()
        };
        Self { memory_bytes: settings.sql_memory.0, spill_bytes: settings.sql_spill.0, settings: engine }
    }

    /// The same for a process that is its user's own: statements may name whatever that user may.
    pub(crate) fn own_engine(&self, data_folder: Option<&Path>, shows: Option<&Credential>) -> Result<EngineSettings> {
        Ok(of_holder(EngineSettings { reach: Reach::of_process(), ..self.engine(data_folder)? }, shows))
    }

    /// The settings of all engines of the process; they share its memory. What earlier ones have spilled below the data folder is
    /// removed.
    pub(crate) fn engine(&self, data_folder: Option<&Path>) -> Result<EngineSettings> {
        let spill_folder = data_folder.map(|folder| folder.join(SPILL_FOLDER));
        if let Some(folder) = &spill_folder {
            empty(folder)?;
        }
        let (memory_bytes, spill_bytes) = (Some(self.memory_bytes), Some(self.spill_bytes));
        let memory = QueryMemory::new(&QueryMemorySettings { memory_bytes, spill_bytes, spill_folder })?;
        Ok(EngineSettings { memory: EngineMemory::Shared(memory), ..self.settings.clone() })
    }
}

/// The settings of an engine whose statements are those of who shows this.
pub(crate) fn of_holder(settings: EngineSettings, shows: Option<&Credential>) -> EngineSettings {
    EngineSettings { who: shows.map_or_else(String::new, Credential::who).into(), ..settings }
}

/// Makes an empty folder that nobody else may read: what is spilled is rows.
fn empty(folder: &Path) -> Result<()> {
    let place = || folder.display().to_string();
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::from(error).context(place())),
        _ => {}
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).context(place)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// As it is where nothing is set.
    fn unset(folder: &Path) -> SqlPart {
        let file = folder.join("forebay.toml");
        std::fs::write(&file, "").expect("a file that sets nothing");
        SqlPart::of(&Config::load(Some(&file), Vec::new()).expect("a configuration"))
    }

    #[test]
    fn what_queries_of_a_server_hold_is_bounded_where_nobody_sets_a_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let part = unset(folder.path());
        let servers = part.engine(Some(folder.path())).expect("settings");
        let own = part.own_engine(None, None).expect("settings");
        // A quarter of what the process may use, on machines that are not tiny.
        let most = (forebay_data_folder::memory_bytes() / 4).max(64 << 20);
        for settings in [servers, own] {
            let EngineMemory::Shared(memory) = settings.memory else { panic!("engines of a process share its memory") };
            let bytes = memory.bytes().expect("a bound");
            assert!(bytes > 0 && bytes <= most, "{bytes} of {most}");
        }
    }

    #[test]
    fn what_was_spilled_before_is_gone_and_nobody_else_reads_what_is_spilled_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = folder.path().join("spill/datafusion-x");
        std::fs::create_dir_all(&old).expect("a folder");
        let bytes = 1 << 20;
        let part = SqlPart { memory_bytes: bytes, spill_bytes: bytes, ..unset(folder.path()) };
        let settings = part.engine(Some(folder.path())).expect("settings");
        assert!(!old.exists() && settings.reach == Reach::of_mounts());
        let mode = folder.path().join("spill").metadata().expect("the folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
