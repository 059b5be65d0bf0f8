//! A progress bar on stderr, where that is a terminal; otherwise silence.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

const TEMPLATE: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";

/// How far a long command has come.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Progress through so many bytes.
    pub(super) fn bytes(doing: &'static str, total: u64) -> Progress {
        let target =
            if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target).with_message(doing);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        Progress { bar }
    }

    pub(super) fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Still at work.
    pub(super) fn tick(&self) {
        self.bar.tick();
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
