//! The native half of the Python package `forebay`: a thin door over the client and the SQL engine.
//!
//! Owns: what crosses between Python and Rust (bytes without a copy, Arrow without a copy, errors, awaitables, signals), and
//! the one runtime of a process. Never does: what the client or the engine does. What Python programs see is written in
//! Python, in `python/forebay`, on top of the classes here.
//!
//! Every call takes `aio`: off, it waits with the interpreter released and gives the answer; on, it gives an awaitable.
//! Start with `connection`.

mod buffer;
mod call;
mod connection;
mod embedded;
mod errors;
mod live;
mod mounts;
mod nodes;
mod objects;
mod parameters;
mod process;
mod rows;
mod shards;
mod stream;

#[pyo3::pymodule]
mod _forebay {
    use std::ffi::OsString;

    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    use crate::process;

    #[pymodule_export]
    use crate::buffer::Buffer;
    #[pymodule_export]
    use crate::connection::Connection;
    #[pymodule_export]
    use crate::embedded::Embedded;
    #[pymodule_export]
    use crate::nodes::NodeObject;
    #[pymodule_export]
    use crate::nodes::Nodes;
    #[pymodule_export]
    use crate::objects::Object;
    #[pymodule_export]
    use crate::objects::Writer;
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::shards::Shards;
    #[pymodule_export]
    use crate::stream::Batch;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Forks are told of, so that a child finds nothing of threads that it does not have.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        let hooks = PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, py)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, py)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, py)?)?;
        py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
        Ok(())
    }

    /// Runs one command of the command line, whose first argument is the program's name; gives the exit code.
    #[pyo3::pyfunction]
    fn command(py: Python<'_>, program: Vec<OsString>, arguments: Vec<OsString>) -> PyResult<u8> {
        let [file, before @ ..] = program.as_slice() else {
            return Err(PyValueError::new_err("no program that starts this command"));
        };
        let program = forebay::Program::called_by(file.into(), before.to_vec());
        Ok(py.detach(|| forebay::command(program, arguments)))
    }

    // None of them is in the module: they are for the hooks alone.
    #[pyo3::pyfunction]
    fn before_fork(py: Python<'_>) {
        process::before_fork(py);
    }

    #[pyo3::pyfunction]
    fn after_fork_in_parent(py: Python<'_>) {
        process::after_fork_in_parent(py);
    }

    #[pyo3::pyfunction]
    fn after_fork_in_child(py: Python<'_>) {
        process::after_fork_in_child(py);
    }
}
