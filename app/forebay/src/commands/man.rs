//! `forebay man`.

use std::fs::{self, File};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use forebay_types::ResultExt;

use crate::exit::Outcome;
use crate::output::Output;

/// Writes `forebay.1` and a page for each command below, `forebay-mount-add.1` and so on.
pub(crate) fn write(folder: &Path, mut command: Command) -> Outcome {
    fs::create_dir_all(folder).context(|| folder.display())?;
    command.build();
    let pages = page(folder, command)?;
    let mut output = Output::new(false);
    output.line(&format!("{pages} pages in {}", folder.display()))?;
    output.finish()
}

/// Of a command and of all that it has; gives how many.
fn page(folder: &Path, command: Command) -> Outcome<usize> {
    let mut pages = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages += page(folder, below.clone())?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
    let file = folder.join(format!("{name}.1"));
    let mut written = File::create(&file).context(|| file.display())?;
    Man::new(command.display_name(name)).render(&mut written).context(|| file.display())?;
    Ok(pages)
}
