//! The user's `read_nonce`: a plain function is called on a thread of its own, a coroutine runs on the event loop it came from.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use leasehold::client::ReadNonce;
use leasehold::nonce::Nonce;
use leasehold::{Code, Error};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::errors::Failure;
use crate::face::Face;
use crate::guard::{guard, lock};
use crate::value::Arg;

/// Reads nonces by the argument of a face. Coroutines run on the loop that is running now, in the context of now.
pub fn nonce_source(function: &Bound<'_, PyAny>, face: Face) -> Result<ReadNonce, Failure> {
    if !function.is_callable() {
        return Err(Error::invalid("read_nonce", "must be a function that takes a slot's id").into());
    }
    let py = function.py();
    let inspected = py.import("inspect")?.call_method1("iscoroutinefunction", (function,))?;
    let home = match face {
        Face::Blocking => None,
        Face::Asyncio => Some(py.import("leasehold._settle")?.call_method0("Home")?.unbind()),
    };
    let function = function.clone().unbind();
    let callable = Arc::new(Callable { function, home, is_coroutine_function: inspected.is_truthy()? });
    Ok(Arc::new(move |slot| {
        let reading = callable.clone().read(slot);
        async {
            reading.await.map_err(|refusal| {
                // Nobody listens for the exception outside of `with_cause`.
                let _ = CAUSE.try_with(|cause| cause.replace(Some(refusal.error.into())));
                refusal.text
            })
        }
    }))
}

/// A call of the core. Its failure gets the exception of a `read_nonce` that was called meanwhile.
pub async fn with_cause<T>(call: impl Future<Output = leasehold::error::Result<T>>) -> Result<T, Failure> {
    let call = async {
        call.await.map_err(|error| match error.code() {
            Code::NonceUnavailable => Failure::Ours(error, CAUSE.with(RefCell::take)),
            _ => error.into(),
        })
    };
    CAUSE.scope(RefCell::default(), call).await
}

tokio::task_local! {
    // The core carries the text of an exception; the exception itself takes this way round.
    static CAUSE: RefCell<Option<Box<PyErr>>>;
}

/// Why there is no answer: for the core, and for Python. Both are made where the interpreter is at hand.
struct Refusal {
    text: String,
    error: PyErr,
}

impl Refusal {
    fn new(py: Python<'_>, error: PyErr) -> Self {
        let kind = error.get_type(py).name().map_or_else(|_| "exception".to_owned(), |it| it.to_string());
        let text = error.value(py).str().map(|it| it.to_string()).unwrap_or_default();
        Self { text: if text.is_empty() { kind } else { format!("{kind}: {text}") }, error }
    }

    fn catch<T>(body: impl FnOnce(Python<'_>) -> Result<T, Failure>) -> Result<T, Self> {
        Python::try_attach(|py| guard(|| body(py)).map_err(|error| Self::new(py, error)))
            .unwrap_or_else(|| Err(gone()))
    }
}

fn gone() -> Refusal {
    let text = "the event loop or the interpreter that read_nonce belongs to has ended";
    Refusal { text: text.to_owned(), error: PyRuntimeError::new_err(text) }
}

struct Callable {
    function: Py<PyAny>,
    /// With asyncio: a `Home` of the package's other half, which awaits on its loop and in its context.
    home: Option<Py<PyAny>>,
    is_coroutine_function: bool,
}

impl Callable {
    /// Calls it and waits for the answer. If this future is dropped, a coroutine is cancelled; a plain function runs to its end,
    /// for there is no way to stop it.
    async fn read(self: Arc<Self>, slot: String) -> Result<Nonce, Refusal> {
        let may_block = !self.is_coroutine_function;
        let call = move || Refusal::catch(|py| self.call(py, slot));
        let answer = if may_block { spawn_blocking(call).await.map_err(|_| gone())? } else { call() };
        match answer? {
            Answer::Nonce(nonce) => Ok(nonce),
            // A loop that was closed gives no sign; the core waits no longer than it has patience.
            Answer::Later(mut awaited) => (&mut awaited.told).await.unwrap_or_else(|_| Err(gone())),
        }
    }

    fn call(&self, py: Python<'_>, slot: String) -> Result<Answer, Failure> {
        let answer = self.function.bind(py).call1((slot,))?;
        if !py.import("inspect")?.call_method1("isawaitable", (&answer,))?.is_truthy()? {
            return Ok(Answer::Nonce(read_answer(&answer)?));
        }
        let awaited = match &self.home {
            Some(home) => Awaited::begin(home.bind(py), &answer),
            None => Err(PyTypeError::new_err("read_nonce is a coroutine function: use leasehold.aio")),
        };
        // Python would complain of a coroutine that nobody awaited.
        let awaited = awaited.inspect_err(|_| drop(answer.call_method0("close")));
        Ok(Answer::Later(awaited?))
    }
}

enum Answer {
    Nonce(Nonce),
    Later(Awaited),
}

/// An awaitable on its way. It is cancelled when this is dropped before it has ended.
struct Awaited {
    told: oneshot::Receiver<Result<Nonce, Refusal>>,
    cancel: Py<PyAny>,
}

impl Awaited {
    fn begin(home: &Bound<'_, PyAny>, awaitable: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (teller, told) = oneshot::channel();
        let cancel = home.call_method1("begin", (awaitable, Listener(Mutex::new(Some(teller)))))?;
        Ok(Self { told, cancel: cancel.unbind() })
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        // A loop that was closed has nothing left to cancel.
        Python::try_attach(|py| drop(self.cancel.call0(py)));
    }
}

/// Hears the end of a task of asyncio.
#[pyclass(frozen)]
struct Listener(Mutex<Option<oneshot::Sender<Result<Nonce, Refusal>>>>);

#[pymethods]
impl Listener {
    fn __call__(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| {
            let read = |_: Python<'_>| read_answer(&task.call_method0(intern!(task.py(), "result"))?);
            if let Some(teller) = lock(&self.0).take() {
                // Nobody listens any more if the call was dropped.
                let _ = teller.send(Refusal::catch(read));
            }
            Ok(())
        })
    }
}

fn read_answer(answer: &Bound<'_, PyAny>) -> Result<Nonce, Failure> {
    Ok(answer.extract::<Arg>()?.nonce("the answer of read_nonce")?)
}
