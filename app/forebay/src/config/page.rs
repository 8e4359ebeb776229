//! The page of settings in the documents, which is the table in another form.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use super::setting::{Default, Setting};
use super::{Flag, TABLE};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
/// Writes the page anew instead of comparing it.
const WRITE: &str = "FOREBAY_TEST_WRITE_SETTINGS";

const HEAD: &str = "\
# Settings

Every setting of the configuration. It is made of `app/forebay/src/config/table.rs`; where settings are written and which of them
wins is in [operations.md](operations.md#configuration).

A key, its variable and its flag are the same word: `data-dir`, `FOREBAY_DATA_DIR`, `--data-dir`. Every key has its variable; where
there is a flag it is named. *Read by* says whose setting it is: `forebay up` reads those of all roles, *commands* are what asks a
running cluster.

More about the settings of S3 is in [s3.md](s3.md), of Flight SQL in [flight-sql.md](flight-sql.md), of `location` in
[specs/nodes.md](specs/nodes.md#where-bytes-are), of `shuffle` in
[distributed-sql.md](distributed-sql.md#what-passes-between-the-stages-of-a-job), of trust in [security.md](security.md).
";

fn page() -> String {
    let mut page = HEAD.to_string();
    let mut section = "";
    for setting in TABLE {
        if setting.section != section {
            section = setting.section;
            let _ =
                write!(page, "\n## {section}\n\n| key | value | default | flag | read by | for |\n|---|---|---|---|---|---|\n");
        }
        let _ = writeln!(page, "{}", row(setting));
    }
    page
}

fn row(setting: &Setting) -> String {
    let flag = match setting.flag {
        Flag::None => String::new(),
        _ => format!("`--{}`", setting.flag_name()),
    };
    let default = match setting.default {
        Default::Words(words) => words.to_string(),
        Default::Value(value) => format!("`{}`", value()),
    };
    let (form, about) = (setting.form.replace('|', "` or `"), setting.about_all());
    format!("| `{}` | `{form}` | {default} | {flag} | {} | {about} |", setting.key, setting.readers())
}

#[test]
fn the_page_of_settings_says_what_the_table_says() {
    if env::var_os(WRITE).is_some() {
        fs::write(PAGE, page()).unwrap();
    }
    let written = fs::read_to_string(Path::new(PAGE)).unwrap_or_default();
    assert!(
        written == page(),
        "docs/settings.md is not what the table of settings says. Write it with\n  {WRITE}=1 cargo test --locked --profile fast \
         -p forebay -p forebay-sql -p forebay-distributed -p forebay-flight --bins page_of_settings"
    );
}
