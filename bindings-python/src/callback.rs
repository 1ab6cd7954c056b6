//! Functions of the user's that the core calls: a plain one on a thread of its own, a coroutine on the event loop it came from.

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex, Weak};

use leasehold::client::ReadNonce;
use leasehold::nonce::Nonce;
use leasehold::{Code, Error};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::errors::Failure;
use crate::face::Face;
use crate::guard::{guard, lock};
use crate::value::Arg;

/// Reads nonces by the argument of a face.
pub fn nonce_source(
    function: &Bound<'_, PyAny>,
    face: Face,
    functions: &mut Functions,
) -> Result<ReadNonce, Failure> {
    if !function.is_callable() {
        return Err(Error::invalid("read_nonce", "must be a function that takes a slot's id").into());
    }
    let callback = functions.callback(function, face, "read_nonce")?;
    Ok(Arc::new(move |slot: String| callback.clone().ask((slot,), read_answer)))
}

/// A call of the core. Its failure gets the exception of a function that was called meanwhile.
pub async fn with_cause<T>(call: impl Future<Output = leasehold::error::Result<T>>) -> Result<T, Failure> {
    let call = async {
        call.await.map_err(|error| match error.code() {
            Code::NonceUnavailable | Code::SourceUnavailable => {
                Failure::Ours(error, CAUSE.with(RefCell::take))
            }
            _ => error.into(),
        })
    };
    CAUSE.scope(RefCell::default(), call).await
}

/// What makes an answer of what a function gave.
pub type Read<T> = fn(&Bound<'_, PyAny>) -> Result<T, Failure>;

/// The functions of a pool or wallet, which owns them where Python's collector sees it: they may know it in turn, as the methods of
/// an object that has it do. Whoever calls has the pool, its lease or the wallet, so that they are there when the core asks.
#[derive(Default)]
pub struct Functions(Mutex<Vec<Arc<Function>>>);

struct Function {
    function: Py<PyAny>,
    /// With asyncio: a `Home` of the package's other half, which awaits on its loop and in its context.
    home: Option<Py<PyAny>>,
}

impl Function {
    /// References of its own, which keep a call that is under way from the collector.
    fn clone_ref(&self, py: Python<'_>) -> Self {
        let home = self.home.as_ref().map(|home| home.clone_ref(py));
        Self { function: self.function.clone_ref(py), home }
    }
}

impl Functions {
    /// Adds one for the core to call. Coroutines run on the loop that is running now, in the context of now.
    pub fn callback(
        &mut self,
        function: &Bound<'_, PyAny>,
        face: Face,
        name: &'static str,
    ) -> PyResult<Callback> {
        let py = function.py();
        let inspected = py.import("inspect")?.call_method1("iscoroutinefunction", (function,))?;
        let home = match face {
            Face::Blocking => None,
            Face::Asyncio => Some(py.import("leasehold._settle")?.call_method0("Home")?.unbind()),
        };
        let is_coroutine_function = inspected.is_truthy()?;
        let function = Arc::new(Function { function: function.clone().unbind(), home });
        let callback = Callback { function: Arc::downgrade(&function), is_coroutine_function, name };
        lock(&self.0).push(function);
        Ok(callback)
    }

    /// Shows them to the collector.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        lock(&self.0).iter().try_for_each(|it| {
            visit.call(&it.function)?;
            visit.call(&it.home)
        })
    }

    /// Lets go of them for the collector.
    pub fn clear(&self) {
        let functions = mem::take(&mut *lock(&self.0));
        // Not under the lock: this runs code of the user's.
        drop(functions);
    }
}

/// A function of the user's as the core has it, where the collector does not look: it does not keep it.
#[derive(Clone)]
pub struct Callback {
    function: Weak<Function>,
    is_coroutine_function: bool,
    name: &'static str,
}

impl Callback {
    /// Calls it and waits for the answer; or says in words why there is none. If this future is dropped, a coroutine is
    /// cancelled; a plain function runs to its end, for there is no way to stop it.
    pub async fn ask<A, T>(self, arguments: A, read: Read<T>) -> Result<T, String>
    where
        A: for<'py> PyCallArgs<'py> + Send + 'static,
        T: Send + 'static,
    {
        self.answer(arguments, read).await.map_err(|refusal| {
            // Nobody listens for the exception outside of `with_cause`.
            let _ = CAUSE.try_with(|cause| cause.replace(Some(refusal.error.into())));
            refusal.text
        })
    }

    async fn answer<A, T>(self, arguments: A, read: Read<T>) -> Result<T, Refusal>
    where
        A: for<'py> PyCallArgs<'py> + Send + 'static,
        T: Send + 'static,
    {
        let (name, may_block) = (self.name, !self.is_coroutine_function);
        let call = move || Refusal::catch(name, |py| self.call(py, arguments, read));
        let answer = if may_block { spawn_blocking(call).await.map_err(|_| gone(name))? } else { call() };
        match answer? {
            Answer::Now(answer) => Ok(answer),
            // A loop that was closed gives no sign; the core waits no longer than it has patience.
            Answer::Later(mut awaited) => (&mut awaited.told).await.unwrap_or_else(|_| Err(gone(name))),
        }
    }

    fn call<A, T>(&self, py: Python<'_>, arguments: A, read: Read<T>) -> Result<Answer<T>, Failure>
    where
        A: for<'py> PyCallArgs<'py>,
        T: Send + 'static,
    {
        let Some(Function { function, home }) = self.function.upgrade().map(|it| it.clone_ref(py)) else {
            let name = self.name;
            return Err(PyRuntimeError::new_err(format!("what {name} belongs to was collected")).into());
        };
        let answer = function.bind(py).call1(arguments)?;
        if !py.import("inspect")?.call_method1("isawaitable", (&answer,))?.is_truthy()? {
            return Ok(Answer::Now(read(&answer)?));
        }
        let name = self.name;
        let awaited = match &home {
            Some(home) => Awaited::begin(home.bind(py), &answer, name, read),
            None => Err(PyTypeError::new_err(format!("{name} is a coroutine function: use leasehold.aio"))),
        };
        // Python would complain of a coroutine that nobody awaited.
        let awaited = awaited.inspect_err(|_| drop(answer.call_method0("close")));
        Ok(Answer::Later(awaited?))
    }
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

    fn catch<T>(name: &str, body: impl FnOnce(Python<'_>) -> Result<T, Failure>) -> Result<T, Self> {
        Python::try_attach(|py| guard(|| body(py)).map_err(|error| Self::new(py, error)))
            .unwrap_or_else(|| Err(gone(name)))
    }
}

fn gone(name: &str) -> Refusal {
    let text = format!("the event loop or the interpreter that {name} belongs to has ended");
    Refusal { error: PyRuntimeError::new_err(text.clone()), text }
}

enum Answer<T> {
    Now(T),
    Later(Awaited<T>),
}

/// An awaitable on its way. It is cancelled when this is dropped before it has ended.
struct Awaited<T> {
    told: oneshot::Receiver<Result<T, Refusal>>,
    cancel: Py<PyAny>,
}

impl<T: Send + 'static> Awaited<T> {
    fn begin(
        home: &Bound<'_, PyAny>,
        awaitable: &Bound<'_, PyAny>,
        name: &'static str,
        read: Read<T>,
    ) -> PyResult<Self> {
        let (teller, told) = oneshot::channel();
        let hear = move |task: &Bound<'_, PyAny>| {
            let result = |_: Python<'_>| read(&task.call_method0(intern!(task.py(), "result"))?);
            // Nobody listens any more if the call was dropped.
            let _ = teller.send(Refusal::catch(name, result));
        };
        let cancel = home.call_method1("begin", (awaitable, Listener(Mutex::new(Some(Box::new(hear))))))?;
        Ok(Self { told, cancel: cancel.unbind() })
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        // A loop that was closed has nothing left to cancel.
        Python::try_attach(|py| drop(self.cancel.call0(py)));
    }
}

/// What is done with a task that has ended.
type Hear = Box<dyn FnOnce(&Bound<'_, PyAny>) + Send>;

/// Hears the end of a task of asyncio.
#[pyclass(frozen)]
struct Listener(Mutex<Option<Hear>>);

#[pymethods]
impl Listener {
    fn __call__(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| {
            let hear = lock(&self.0).take();
            if let Some(hear) = hear {
                hear(task);
            }
            Ok(())
        })
    }
}

fn read_answer(answer: &Bound<'_, PyAny>) -> Result<Nonce, Failure> {
    Ok(answer.extract::<Arg>()?.nonce("the answer of read_nonce")?)
}
