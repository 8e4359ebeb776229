//! From errors of Forebay to the exceptions of `forebay.errors`, with the path that they are about.

use forebay_client::NodeError;
use forebay_types::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// What went wrong in a call: in Forebay, on a path, or in Python.
#[derive(Debug)]
pub(crate) enum Failure {
    Forebay(Error, Option<String>),
    /// Of a temporary node.
    Node(NodeError, String),
    Python(PyErr),
}

impl Failure {
    pub(crate) fn on(path: &Option<String>) -> impl FnOnce(Error) -> Self {
        let path = path.clone();
        move |error| Self::Forebay(error, path)
    }

    /// The exception; its class is one of `forebay.errors`.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Python(error) => error,
            Self::Node(error, path) => made(of_node(py, &error, path)),
            Self::Forebay(error, path) => {
                let path = path.or_else(|| named(error.message()).map(str::to_string));
                made(exception(py, error.kind(), error.message(), path))
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Forebay(error, None)
    }
}

/// The exception of an error without a path of its own.
pub(crate) fn raised(py: Python<'_>, error: Error) -> PyErr {
    Failure::from(error).raise(py)
}

fn exception<'py>(py: Python<'py>, kind: ErrorKind, message: &str, path: Option<String>) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MAKE.import(py, "forebay.errors", "_of_kind")?.call1((kind.as_str(), message, path))
}

fn of_node<'py>(py: Python<'py>, error: &NodeError, path: String) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MAKE.import(py, "forebay.errors", "_of_node")?.call1((error.kind.as_str(), &error.message, path))
}

fn made(exception: PyResult<Bound<'_, PyAny>>) -> PyErr {
    exception.map_or_else(|error| error, PyErr::from_value)
}

/// The first path that a message names: messages name theirs.
fn named(message: &str) -> Option<&str> {
    message.match_indices('/').find_map(|(at, _)| {
        let rest = &message[at..];
        let path = match message[..at].chars().next_back() {
            // To the other quote: names have spaces in them.
            Some(quote @ ('\'' | '"' | '`')) => rest.split(quote).next()?,
            Some(before) if !before.is_whitespace() && before != '(' => return None,
            _ => rest.split_whitespace().next()?.trim_end_matches([':', ',', ';', '\'', '"', '`', ')', '.']),
        };
        let mount = path.strip_prefix('/')?.split('/').next()?;
        mount.parse::<forebay_types::MountName>().ok().map(|_| path)
    })
}
