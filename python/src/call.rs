//! How every call of Python runs: the interpreter released while it waits, Ctrl-C heard, or as an awaitable of asyncio.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use forebay_runtime::now;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::errors::{Failure, raised};
use crate::process::runtime;

/// How long a call goes on after Ctrl-C at most.
const SIGNALS: Duration = Duration::from_millis(50);

/// What Python may be given by any thread.
pub(crate) trait Given: for<'any> IntoPyObject<'any> + Send + 'static {}

impl<T: for<'any> IntoPyObject<'any> + Send + 'static> Given for T {}

/// The answer of a call, or an awaitable of it.
pub(crate) type Answer<'py> = PyResult<Bound<'py, PyAny>>;

/// Runs a call: waits for its answer, or gives an awaitable with `aio`.
pub(crate) fn run<'py, T: Given, F>(py: Python<'py>, aio: bool, call: F) -> Answer<'py>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    if aio { awaitable(py, call) } else { wait(py, call)?.into_bound_py_any(py) }
}

/// Waits with the interpreter released. Ctrl-C drops the call, which cancels what it does.
pub(crate) fn wait<T: Send>(py: Python<'_>, call: impl Future<Output = Result<T, Failure>> + Send) -> PyResult<T> {
    let runtime = runtime().map_err(|error| raised(py, error))?;
    let heard = || Python::attach(|py| py.check_signals()).map_err(Failure::Python);
    let outcome = py.detach(|| until_interrupted(&runtime, call, heard));
    outcome.and_then(|outcome| outcome).map_err(|failure| failure.raise(py))
}

/// Waits for what `work` gives, or for the error of `heard`, which is asked while it waits. Then the work is dropped.
///
/// This thread has a clock of its own: the runtime's goes on between pieces of work only, and a query that computes on all of
/// its threads leaves seconds between them.
pub(crate) fn until_interrupted<T, E>(
    runtime: &Handle,
    work: impl Future<Output = T>,
    mut heard: impl FnMut() -> Result<(), E>,
) -> Result<T, E> {
    let _timers_and_tasks_are_its = runtime.enter();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut work = pin!(work);
    let mut asked = now();
    loop {
        // In the runtime, for once: only there has work a budget, without which a plan of one partition computes to its end here.
        let polled = runtime.block_on(poll_fn(|_| Poll::Ready(work.as_mut().poll(&mut Context::from_waker(&waker)))));
        if let Poll::Ready(output) = polled {
            return Ok(output);
        }
        thread::park_timeout(SIGNALS);
        // Not whenever it is woken: to ask, the interpreter is waited for.
        if asked.elapsed() >= SIGNALS {
            heard()?;
            asked = now();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A future of the running event loop. Cancelling it cancels the call.
fn awaitable<'py, T: Given, F>(py: Python<'py>, call: F) -> Answer<'py>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    static RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let runtime = runtime().map_err(|error| raised(py, error))?;
    let event_loop = RUNNING_LOOP.import(py, "asyncio", "get_running_loop")?.call0()?;
    let promise = event_loop.call_method0("create_future")?;
    let (settled, event_loop) = (promise.clone().unbind(), event_loop.unbind());
    let task = runtime.spawn(async move {
        let outcome = call.await;
        // Waiting for the interpreter would hold up what else this thread has to do.
        let tell = move || {
            // An interpreter that ends waits for no answer.
            let _ = Python::try_attach(|py| tell(py, &event_loop, &settled, outcome));
        };
        let _ = tokio::task::spawn_blocking(tell).await;
    });
    promise.call_method1("add_done_callback", (Cancel(task.abort_handle()),))?;
    Ok(promise)
}

fn tell(py: Python<'_>, event_loop: &Py<PyAny>, promise: &Py<PyAny>, outcome: Result<impl Given, Failure>) -> PyResult<()> {
    static SETTLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let settle = SETTLE.import(py, "forebay.errors", "_settle")?;
    let none = py.None();
    let outcome = outcome.map_err(|failure| failure.raise(py)).and_then(|answer| answer.into_py_any(py));
    let arguments = match outcome {
        Ok(answer) => (settle, promise, answer, none),
        Err(error) => (settle, promise, none, error.into_py_any(py)?),
    };
    // Fails when the loop is closed: nobody waits any more.
    event_loop.bind(py).call_method1("call_soon_threadsafe", arguments)?;
    Ok(())
}

/// Told that an awaitable is done; a cancelled one's call is still under way.
#[pyclass(frozen)]
struct Cancel(AbortHandle);

#[pymethods]
impl Cancel {
    fn __call__(&self, _promise: &Bound<'_, PyAny>) {
        self.0.abort();
    }
}
