//! Functions of the user that Rust calls: plain ones on a thread of their own, coroutines on the event loop they came from.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::bridge::{Bridge, Inbox, is_closed};
use crate::guard::{guard, lock};
use crate::value::{self, Value};

/// A callable and where its calls belong.
#[derive(Clone)]
pub struct Callback(Arc<Callable>);

impl Callback {
    /// For the blocking API. `name` is what errors call it.
    pub fn blocking(callable: Bound<'_, PyAny>, name: &'static str) -> Self {
        Self(Arc::new(Callable { function: callable.unbind(), name, home: None }))
    }

    /// For asyncio: coroutines run on the loop that is running now, in the context of now.
    pub fn asyncio(callable: Bound<'_, PyAny>, name: &'static str) -> PyResult<Self> {
        let py = callable.py();
        let bridge = Bridge::running(py)?;
        let home = Home {
            inbox: bridge.get().inbox.clone(),
            event_loop: bridge.get().event_loop.clone_ref(py),
            context: py.import("contextvars")?.call_method0("copy_context")?.unbind(),
            is_coroutine_function: py
                .import("inspect")?
                .call_method1("iscoroutinefunction", (&callable,))?
                .is_truthy()?,
        };
        Ok(Self(Arc::new(Callable { function: callable.unbind(), name, home: Some(home) })))
    }

    /// Calls it and waits for the answer. If this future is dropped, a coroutine is cancelled; a plain function runs to its end,
    /// for there is no way to stop it.
    pub async fn call(&self, argument: String) -> PyResult<Value> {
        let callable = self.0.clone();
        if callable.home.as_ref().is_some_and(|home| home.is_coroutine_function) {
            return self.run_on_loop(move |py| callable.function.call1(py, (argument,))).await;
        }
        match spawn_blocking(move || callable.call_here(argument)).await.map_err(|_| gone())?? {
            Answer::Value(value) => Ok(value),
            Answer::Awaitable(awaitable) => self.run_on_loop(move |_| Ok(awaitable)).await,
        }
    }

    async fn run_on_loop(
        &self,
        make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Value> {
        let home = self.0.home.as_ref().ok_or_else(gone)?;
        let (teller, mut told) = oneshot::channel();
        let callable = self.0.clone();
        let id = home.inbox.number();
        home.inbox.post(Box::new(move |py, bridge| {
            let listener = Listener { teller: Mutex::new(Some(teller)), id, name: callable.name };
            let listener = Bound::new(py, listener)?;
            if let Err(error) = callable.begin(bridge, &listener, make) {
                listener.get().tell(Err(error));
            }
            Ok(())
        }));
        let mut unheard = Unheard { inbox: home.inbox.clone(), id, is_over: false };
        loop {
            if let Ok(answer) = timeout(GLANCE, &mut told).await {
                unheard.is_over = true;
                return answer.unwrap_or_else(|_| Err(gone()));
            }
            let callable = self.0.clone();
            if spawn_blocking(move || callable.is_homeless()).await.unwrap_or(true) {
                return Err(gone());
            }
        }
    }
}

struct Callable {
    function: Py<PyAny>,
    name: &'static str,
    home: Option<Home>,
}

struct Home {
    inbox: Arc<Inbox>,
    event_loop: Py<PyAny>,
    context: Py<PyAny>,
    is_coroutine_function: bool,
}

enum Answer {
    Value(Value),
    Awaitable(Py<PyAny>),
}

impl Callable {
    fn call_here(&self, argument: String) -> PyResult<Answer> {
        Python::try_attach(|py| {
            guard(|| {
                let answer = self.function.bind(py).call1((argument,))?;
                if !py.import("inspect")?.call_method1("isawaitable", (&answer,))?.is_truthy()? {
                    return Ok(Answer::Value(value::read(&answer, self.name)?));
                }
                if self.home.is_some() {
                    return Ok(Answer::Awaitable(answer.unbind()));
                }
                // Python would complain of a coroutine that nobody awaited.
                let _ = answer.call_method0("close");
                Err(PyTypeError::new_err(format!("{} is a coroutine function: use leasehold.aio", self.name)))
            })
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
        let home = self.home.as_ref().ok_or_else(gone)?;
        let ensure_future = py.import("asyncio")?.getattr("ensure_future")?;
        let task = home.context.bind(py).call_method1("run", (ensure_future, make(py)?))?;
        task.call_method1("add_done_callback", (listener,))?;
        bridge.keep(listener.get().id, task.unbind());
        Ok(())
    }

    fn is_homeless(&self) -> bool {
        let closed =
            |home: &Home| Python::try_attach(|py| is_closed(home.event_loop.bind(py)).unwrap_or(true));
        self.home.as_ref().and_then(closed).unwrap_or(true)
    }
}

/// How often the loop of a coroutine is looked at: one that was closed gives no sign of its own.
const GLANCE: Duration = Duration::from_secs(1);

/// Hears the end of a task of asyncio.
#[pyclass(frozen)]
struct Listener {
    teller: Mutex<Option<oneshot::Sender<PyResult<Value>>>>,
    id: u64,
    name: &'static str,
}

impl Listener {
    fn tell(&self, answer: PyResult<Value>) {
        if let Some(teller) = lock(&self.teller).take() {
            // Nobody listens any more if the call was dropped.
            let _ = teller.send(answer);
        }
    }
}

#[pymethods]
impl Listener {
    fn __call__(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| {
            let py = task.py();
            Bridge::running(py)?.get().take(self.id);
            let answer = task.call_method0(intern!(py, "result"));
            self.tell(answer.and_then(|answer| Ok(value::read(&answer, self.name)?)));
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

fn gone() -> PyErr {
    PyRuntimeError::new_err("the event loop or the interpreter that the function belongs to has ended")
}
