//! What docs/troubleshooting.md and docs/upgrades.md say that Forebay says, it says.

#![allow(clippy::unwrap_used, reason = "a test ends where the checkout can't be read")]

use std::fs;
use std::path::Path;

const PAGES: [&str; 2] = ["docs/troubleshooting.md", "docs/upgrades.md"];
/// Less than this is found anywhere, and says nothing.
const PIECE_LETTERS_MIN: usize = 6;

/// The messages in the first cells of a page's tables: text between back quotes, single or double. Names of commands and keys are short
/// of blanks.
fn messages(page: &str) -> Vec<String> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")).filter_map(|line| line.split(" | ").next());
    let spoken = cells.flat_map(|cell| match cell.split_once("`` ") {
        Some((_, rest)) => vec![rest.split(" ``").next().unwrap_or_default().to_owned()],
        None => cell.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
    });
    spoken.filter(|message| message.split(' ').count() > 3).collect()
}

/// All Rust that is shipped, with texts that go over several lines put together.
fn said(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            said(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut lines = fs::read_to_string(&path).unwrap();
            while let Some(at) = lines.find("\\\n") {
                let rest = lines[at + 2..].trim_start().to_owned();
                lines.truncate(at);
                lines.push_str(&rest);
            }
            text.push_str(&lines);
        }
    }
}

#[test]
fn the_pages_quote_only_what_is_said() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut text = String::new();
    for folder in ["crates", "app"] {
        said(&root.join(folder), &mut text);
    }
    let mut missing = Vec::new();
    for page in PAGES {
        let messages = messages(&fs::read_to_string(root.join(page)).unwrap());
        assert!(messages.len() >= 3, "{page} quotes no messages");
        for message in messages {
            let pieces = message.split("..").map(str::trim).filter(|piece| piece.len() >= PIECE_LETTERS_MIN);
            missing.extend(pieces.filter(|piece| !text.contains(*piece)).map(|piece| format!("{page}: {piece:?}")));
        }
    }
    assert!(missing.is_empty(), "nothing says\n{}", missing.join("\n"));
}
