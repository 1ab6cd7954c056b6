//! Functions of the user's that the core calls: a plain one on a thread of its own, a coroutine on the event loop it came from.
//! The call itself is Python's, see `_functions.py`.

use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex, Weak};

use leasehold::client::ReadNonce;
use leasehold::nonce::Nonce;
use leasehold::{Code, Error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;

use crate::asked::{Asked, Read, Refusal};
use crate::errors::Failure;
use crate::face::Face;
use crate::guard::lock;
use crate::kept::Seen;
use crate::runtime;
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
    Ok(Arc::new(move |slot: String| callback.clone().ask(format!("{slot}: "), (slot,), read_answer)))
}

/// A call of the core. Its failure gets the exception that it names, of a function that was called meanwhile.
pub async fn with_cause<T>(call: impl Future<Output = leasehold::error::Result<T>>) -> Result<T, Failure> {
    let call = async {
        call.await.map_err(|error| match error.code() {
            Code::NonceUnavailable | Code::SourceUnavailable => {
                let mut causes = CAUSES.with(RefCell::take);
                causes.retain(|(text, _)| error.message().contains(text.as_str()));
                // What another one said may be a part of it.
                let named = causes.into_iter().max_by_key(|(text, _)| text.len());
                Failure::Ours(error, named.map(|(_, cause)| cause))
            }
            _ => error.into(),
        })
    };
    CAUSES.scope(RefCell::default(), call).await
}

/// The functions of a pool or wallet, which owns them where Python's collector sees it: they may know it in turn, as the methods of
/// an object that has it do. Whoever calls has the pool, its lease or the wallet, so that they are there when the core asks.
#[derive(Default)]
pub struct Functions(Mutex<Vec<Arc<Function>>>);

struct Function {
    function: Py<PyAny>,
    /// With asyncio: a `Home` of the package's other half, which awaits on its loop and in its context, if a loop ran.
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
    /// Adds one for the core to call. Coroutines run on the loop that is running now, in the context of now; plain functions need none.
    pub fn callback(
        &mut self,
        function: &Bound<'_, PyAny>,
        face: Face,
        name: &'static str,
    ) -> Result<Callback, Failure> {
        let py = function.py();
        let functions = py.import("leasehold._functions")?;
        let awaited = face == Face::Asyncio;
        let is_coroutine_function =
            functions.call_method1("check", (function, awaited, name))?.is_truthy()?;
        let home =
            awaited.then(|| functions.call_method1("home", (is_coroutine_function, name))).transpose()?;
        let home = home.filter(|home| !home.is_none()).map(Bound::unbind);
        let function = Arc::new(Function { function: function.clone().unbind(), home });
        let turns = &runtime::local(py)?.turns;
        let callback = Callback { function: Arc::downgrade(&function), is_coroutine_function, name, turns };
        lock(&self.0).push(function);
        Ok(callback)
    }

    /// Lets go of them for the collector.
    pub fn clear(&self) {
        let functions = mem::take(&mut *lock(&self.0));
        // Not under the lock: this runs code of the user's.
        drop(functions);
    }
}

impl Seen for Functions {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        lock(&self.0).iter().try_for_each(|it| {
            visit.call(&it.function)?;
            visit.call(&it.home)
        })
    }
}

/// A function of the user's as the core has it, where the collector does not look: it does not keep it.
#[derive(Clone)]
pub struct Callback {
    function: Weak<Function>,
    is_coroutine_function: bool,
    name: &'static str,
    /// For a thread.
    turns: &'static Semaphore,
}

impl Callback {
    /// Calls it and waits for the answer; or says in words why there is none, before which the core's error has `of`. If this
    /// future is dropped, a coroutine is cancelled; a plain function runs to its end, for there is no way to stop it.
    pub async fn ask<A, T>(self, of: String, arguments: A, read: Read<T>) -> Result<T, String>
    where
        A: for<'py> IntoPyObjectExt<'py> + Send + 'static,
        T: Send + 'static,
    {
        self.answer(arguments, read).await.map_err(|refusal| {
            // Nobody listens for the exception outside of `with_cause`.
            let _ = CAUSES.try_with(|causes| {
                causes.borrow_mut().push((of + &refusal.text, refusal.error.into()));
            });
            refusal.text
        })
    }

    async fn answer<A, T>(self, arguments: A, read: Read<T>) -> Result<T, Refusal>
    where
        A: for<'py> IntoPyObjectExt<'py> + Send + 'static,
        T: Send + 'static,
    {
        let name = self.name;
        let mut asked = if self.is_coroutine_function {
            // Its call does nothing yet.
            Refusal::catch(name, |py| self.begin(py, arguments, read, None))?
        } else {
            let turn = self.turns.acquire().await.ok();
            let begin = move || Refusal::catch(name, |py| self.begin(py, arguments, read, turn));
            // Whoever polls this is not to wait for the interpreter.
            spawn_blocking(begin).await.map_err(|_| Refusal::gone(name))??
        };
        // A loop that was closed gives no sign; the core waits no longer than it has patience.
        asked.told().await.unwrap_or_else(|_| Err(Refusal::gone(name)))
    }

    /// Begins a call: with a turn on a thread of its own, without one on this.
    fn begin<A, T>(
        &self,
        py: Python<'_>,
        arguments: A,
        read: Read<T>,
        turn: Option<SemaphorePermit<'static>>,
    ) -> Result<Asked<T>, Failure>
    where
        A: for<'py> IntoPyObjectExt<'py>,
        T: Send + 'static,
    {
        static ASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static START: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let Some(Function { function, home }) = self.function.upgrade().map(|it| it.clone_ref(py)) else {
            let name = self.name;
            return Err(PyRuntimeError::new_err(format!("what {name} belongs to was collected")).into());
        };
        let ask = ASK.import(py, "leasehold._functions", "ask")?;
        let on_a_thread = turn.is_some();
        let (asked, listener) = Asked::new(self.name, read, turn);
        let call = (function, arguments.into_py_any(py)?, home, self.name, listener).into_pyobject(py)?;
        if on_a_thread {
            // As its frames are all Python's, the thread may be ended at the exit, which unwinds its stack: no frame of Rust
            // stands that. And this function does not wait, for the new thread to run, as that of `threading` does.
            START.import(py, "_thread", "start_new_thread")?.call1((ask, call))?;
        } else {
            ask.call1(call)?;
        }
        Ok(asked)
    }
}

tokio::task_local! {
    // The core carries the text of an exception; the exception itself takes this way round, with its text.
    static CAUSES: RefCell<Vec<(String, Box<PyErr>)>>;
}

fn read_answer(answer: &Bound<'_, PyAny>) -> Result<Nonce, Failure> {
    Ok(answer.extract::<Arg>()?.nonce("the answer of read_nonce")?)
}
