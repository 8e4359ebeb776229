//! What a check says.

use serde::Serialize;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// It runs, but less well than it could.
    Warning,
    Failure,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: String,
    pub(super) state: State,
    pub(super) found: String,
    /// What to do; none where all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { check: check.into(), state: State::Ok, found: found.into(), remedy: None }
    }

    pub(super) fn warning(check: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { state: State::Warning, remedy: Some(remedy.into()), ..Self::ok(check, found) }
    }

    pub(super) fn failure(check: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { state: State::Failure, remedy: Some(remedy.into()), ..Self::ok(check, found) }
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mark = match self.state {
            State::Ok => "ok     ",
            State::Warning => "look at",
            State::Failure => "mend   ",
        };
        let mut lines = vec![format!("{mark}  {:<20} {}", self.check, self.found)];
        lines.extend(self.remedy.iter().map(|remedy| format!("{:>29} -> {remedy}", "")));
        lines
    }
}
