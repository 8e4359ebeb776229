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
mod object;
mod objects;
mod parameters;
mod paths;
mod process;
mod rows;
mod stream;
mod writer;

#[pyo3::pymodule]
mod _forebay {
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
    use crate::object::Object;
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::stream::Batch;
    #[pymodule_export]
    use crate::writer::Writer;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
