//! The statements that went well, for `forebay table suggest`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use forebay_types::{Result, ResultExt};

/// Bytes that are kept; when there are more, the older half goes.
const BYTES_MAX: u64 = 1 << 20;

fn file() -> Option<PathBuf> {
    Some(forebay_data_folder::state_folder()?.join("queries"))
}

/// Remembers a statement. A history that can't be kept is no reason to stop.
pub(super) fn remember(statement: &str) {
    let Some(file) = file() else { return };
    let add = || -> std::io::Result<()> {
        if fs::metadata(&file).is_ok_and(|meta| meta.len() > BYTES_MAX) {
            let text = fs::read_to_string(&file)?;
            let half = text.len() - text.floor_char_boundary(BYTES_MAX as usize / 2);
            let half = text.ceil_char_boundary(half);
            let start = text[half..].find('\n').map_or(text.len(), |at| half + at + 1);
            fs::write(&file, &text[start..])?;
        }
        let mut open = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&file)?;
        // One write, so that commands that run at once don't mix their lines.
        open.write_all(format!("{}\n", serde_json::Value::from(statement)).as_bytes())
    };
    if let Err(error) = add() {
        tracing::debug!(%error, "the statement was not remembered");
    }
}

/// The statements, the oldest first.
pub(crate) fn read() -> Result<Vec<String>> {
    let Some(file) = file().filter(|file| file.exists()) else { return Ok(Vec::new()) };
    let text = fs::read_to_string(&file).context(|| file.display())?;
    // A line that was cut off is left out.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
