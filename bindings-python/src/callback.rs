//! The user's `read_nonce`: a plain function is called on a thread of its own, a coroutine on the event loop it came from.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use leasehold::Error;
use leasehold::client::{BoxedFuture, NonceSource, ReadNonce};
use leasehold::nonce::Nonce;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::bridge::{Bridge, Inbox};
use crate::errors::Failure;
use crate::face::Face;
use crate::guard::{guard, lock};
use crate::value::Arg;

/// Reads nonces by the argument of a face.
pub fn nonce_source(function: &Bound<'_, PyAny>, face: Face) -> Result<ReadNonce, Failure> {
    if !function.is_callable() {
        return Err(Error::invalid("read_nonce", "must be a function that takes a slot's id").into());
    }
    let function = function.clone();
    Ok(Arc::new(match face {
        Face::Blocking => Callback::blocking(function),
        Face::Asyncio => Callback::asyncio(function)?,
    }))
}

/// A callable and where its calls belong.
#[derive(Clone)]
pub struct Callback(Arc<Callable>);

impl Callback {
    /// For the blocking API.
    pub fn blocking(callable: Bound<'_, PyAny>) -> Self {
        Self(Arc::new(Callable { function: callable.unbind(), home: None }))
    }

    /// For asyncio: coroutines run on the loop that is running now, in the context of now.
    pub fn asyncio(callable: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = callable.py();
        let bridge = Bridge::running(py)?;
        let home = Home {
            inbox: bridge.get().inbox.clone(),
            context: py.import("contextvars")?.call_method0("copy_context")?.unbind(),
            is_coroutine_function: py
                .import("inspect")?
                .call_method1("iscoroutinefunction", (&callable,))?
                .is_truthy()?,
        };
        Ok(Self(Arc::new(Callable { function: callable.unbind(), home: Some(home) })))
    }

    /// Calls it and waits for the answer. If this future is dropped, a coroutine is cancelled; a plain function runs to its end,
    /// for there is no way to stop it.
    async fn call(&self, slot: String) -> Result<Nonce, Refusal> {
        let callable = self.0.clone();
        if callable.home.as_ref().is_some_and(|home| home.is_coroutine_function) {
            return self.run_on_loop(move |py| callable.function.call1(py, (slot,))).await;
        }
        match spawn_blocking(move || callable.call_here(slot)).await.map_err(|_| gone())?? {
            Answer::Nonce(nonce) => Ok(nonce),
            Answer::Awaitable(awaitable) => self.run_on_loop(move |_| Ok(awaitable)).await,
        }
    }

    async fn run_on_loop(
        &self,
        make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Result<Nonce, Refusal> {
        let home = self.0.home.as_ref().ok_or_else(gone)?;
        let (teller, told) = oneshot::channel();
        let callable = self.0.clone();
        let id = home.inbox.number();
        home.inbox.post(Box::new(move |py, bridge| {
            let listener = Bound::new(py, Listener { teller: Mutex::new(Some(teller)), id })?;
            if let Err(error) = callable.begin(bridge, &listener, make) {
                listener.get().tell(py, Err(error));
            }
            Ok(())
        }));
        let mut unheard = Unheard { inbox: home.inbox.clone(), id, is_over: false };
        // A loop that was closed gives no sign; the core waits no longer than it has patience.
        let answer = told.await;
        unheard.is_over = true;
        answer.unwrap_or_else(|_| Err(gone()))
    }
}

impl NonceSource for Callback {
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<Nonce, String>> {
        Box::pin(async move {
            self.call(slot.to_owned()).await.map_err(|refusal| {
                // Nobody listens for the exception outside of `with_cause`.
                let _ = CAUSE.try_with(|cause| cause.replace(Some(refusal.error.into())));
                refusal.text
            })
        })
    }
}

/// A call of the core. Its failure gets the exception of a `read_nonce` that was called meanwhile.
pub async fn with_cause<T>(call: impl Future<Output = leasehold::error::Result<T>>) -> Result<T, Failure> {
    let call = async {
        match call.await {
            Ok(value) => Ok(value),
            Err(error) if error.code() == leasehold::Code::NonceUnavailable => {
                Err(Failure::Ours(error, CAUSE.with(RefCell::take)))
            }
            Err(error) => Err(error.into()),
        }
    };
    CAUSE.scope(RefCell::default(), call).await
}

tokio::task_local! {
    // The core carries the text of an exception; the exception itself takes this way round.
    static CAUSE: RefCell<Option<Box<PyErr>>>;
}

/// Why there is no answer: for the core, and for Python. Both are made where the interpreter is at hand, which Tokio's threads
/// never wait for.
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
}

struct Callable {
    function: Py<PyAny>,
    home: Option<Home>,
}

struct Home {
    inbox: Arc<Inbox>,
    context: Py<PyAny>,
    is_coroutine_function: bool,
}

enum Answer {
    Nonce(Nonce),
    Awaitable(Py<PyAny>),
}

impl Callable {
    fn call_here(&self, slot: String) -> Result<Answer, Refusal> {
        Python::try_attach(|py| {
            let answer = guard(|| {
                let answer = self.function.bind(py).call1((slot,))?;
                if !py.import("inspect")?.call_method1("isawaitable", (&answer,))?.is_truthy()? {
                    return Ok(Answer::Nonce(answer.extract::<Arg>()?.nonce(ANSWER)?));
                }
                if self.home.is_some() {
                    return Ok(Answer::Awaitable(answer.unbind()));
                }
                // Python would complain of a coroutine that nobody awaited.
                let _ = answer.call_method0("close");
                Err(PyTypeError::new_err("read_nonce is a coroutine function: use leasehold.aio").into())
            });
            answer.map_err(|error| Refusal::new(py, error))
        })
        .unwrap_or_else(|| Err(gone()))
    }

    fn begin(
        &self,
        bridge: &Bridge,
        listener: &Bound<'_, Listener>,
        make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    ) -> PyResult<()> {
        let py = listener.py();
        let home = self.home.as_ref().ok_or_else(|| gone().error)?;
        let ensure_future = py.import("asyncio")?.getattr("ensure_future")?;
        let task = home.context.bind(py).call_method1("run", (ensure_future, make(py)?))?;
        task.call_method1("add_done_callback", (listener,))?;
        bridge.keep(listener.get().id, task.unbind());
        Ok(())
    }
}

/// What errors call it.
const ANSWER: &str = "the answer of read_nonce";

/// Hears the end of a task of asyncio.
#[pyclass(frozen)]
struct Listener {
    teller: Mutex<Option<oneshot::Sender<Result<Nonce, Refusal>>>>,
    id: u64,
}

impl Listener {
    fn tell(&self, py: Python<'_>, answer: PyResult<Nonce>) {
        if let Some(teller) = lock(&self.teller).take() {
            // Nobody listens any more if the call was dropped.
            let _ = teller.send(answer.map_err(|error| Refusal::new(py, error)));
        }
    }
}

#[pymethods]
impl Listener {
    fn __call__(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| {
            let py = task.py();
            Bridge::running(py)?.get().take(self.id);
            let answer = task.call_method0(intern!(py, "result")).map_err(Failure::from);
            let nonce = answer.and_then(|answer| Ok(answer.extract::<Arg>()?.nonce(ANSWER)?));
            self.tell(py, nonce.map_err(PyErr::from));
            Ok(())
        })
    }
}

/// Cancels the task when the call is dropped before it has its answer.
struct Unheard {
    inbox: Arc<Inbox>,
    id: u64,
    is_over: bool,
}

impl Drop for Unheard {
    fn drop(&mut self) {
        let id = self.id;
        if !self.is_over {
            self.inbox.post(Box::new(move |py, bridge| {
                if let Some(task) = bridge.take(id) {
                    task.call_method0(py, intern!(py, "cancel"))?;
                }
                Ok(())
            }));
        }
    }
}

fn gone() -> Refusal {
    let text = "the event loop or the interpreter that read_nonce belongs to has ended";
    Refusal { text: text.to_owned(), error: PyRuntimeError::new_err(text) }
}
