//! Bars and spinners for long work, which show on a terminal alone and never mix with what is printed.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of bytes on the standard error; nothing where no terminal is.
pub(crate) fn bytes(what: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total).with_message(what.to_string());
    bar.set_style(style("{msg:<28} [{bar:28}] {binary_bytes:>10}/{binary_total_bytes:<10} {binary_bytes_per_sec:>12} {eta:>4}"));
    bar
}

pub(crate) fn steps(what: &str, total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total).with_message(what.to_string());
    bar.set_style(style("{msg:<28} [{bar:28}] {pos:>3}/{len:<3} {elapsed:>5}"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Something whose end is not known.
pub(crate) fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what.to_string());
    bar.set_style(style("{spinner} {msg} {elapsed}"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well formed").progress_chars("=> ")
}
