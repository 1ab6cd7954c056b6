//! What the user's functions are asked, and who hears their answers.

use std::mem;
use std::sync::{Arc, Mutex};

use leasehold::Code;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{PyTraverseError, PyVisit};
use tokio::sync::{SemaphorePermit, oneshot};

use crate::errors::Failure;
use crate::guard::{guard, lock};
use crate::process::Homebound;

/// What makes an answer of what a function gave.
pub type Read<T> = fn(&Bound<'_, PyAny>) -> Result<T, Failure>;

/// A question that is on its way. If this is dropped before the answer is there, a coroutine is cancelled; a plain function runs to
/// its end, for there is no way to stop it.
pub struct Asked<T> {
    told: oneshot::Receiver<Result<T, Refusal>>,
    interest: Arc<Mutex<Interest>>,
}

/// Whether somebody waits for the answer, and how who gives it is told that nobody does.
enum Interest {
    Waits,
    Cancels(Py<PyAny>),
    Gone,
}

impl<T: Send + 'static> Asked<T> {
    /// A question, and who hears the answer.
    pub fn new(
        name: &'static str,
        read: Read<T>,
        turn: Option<SemaphorePermit<'static>>,
    ) -> (Self, Listener) {
        let (teller, told) = oneshot::channel();
        let hear: Hear = Box::new(move |answer| {
            let answer = answer.and_then(|answer| Refusal::catch(name, |_| read(&answer)));
            // Nobody listens any more if the call was dropped.
            let _ = teller.send(answer);
        });
        let interest = Arc::new(Mutex::new(Interest::Waits));
        let ear = Mutex::new(Some(Ear { hear, turn, interest: interest.clone() }));
        (Self { told, interest }, Listener(Homebound::new(ear, Code::Lost, "question")))
    }

    /// The answer.
    pub fn told(&mut self) -> &mut oneshot::Receiver<Result<T, Refusal>> {
        &mut self.told
    }
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        let before = mem::replace(&mut *lock(&self.interest), Interest::Gone);
        // Not under the lock: who has the interpreter may want it.
        if let Interest::Cancels(cancel) = before {
            // A loop that was closed has nothing left to cancel.
            Python::try_attach(|py| drop(cancel.call0(py)));
        }
    }
}

/// What is done with an answer.
type Hear = Box<dyn FnOnce(Result<Bound<'_, PyAny>, Refusal>) + Send>;

struct Ear {
    hear: Hear,
    /// For the thread on which the function runs.
    turn: Option<SemaphorePermit<'static>>,
    interest: Arc<Mutex<Interest>>,
}

/// Hears what a function gave, once. A fork of this process that runs to the function's end has nobody to tell.
#[pyclass(frozen)]
pub struct Listener(Homebound<Mutex<Option<Ear>>>);

impl Listener {
    fn hear(&self, answer: Result<Bound<'_, PyAny>, Refusal>) -> Result<(), Failure> {
        let ear = lock(self.0.get()?).take();
        if let Some(Ear { hear, .. }) = ear {
            hear(answer);
        }
        Ok(())
    }
}

#[pymethods]
impl Listener {
    /// It gave this.
    fn answered(&self, answer: Bound<'_, PyAny>) -> PyResult<()> {
        guard(|| self.hear(Ok(answer)))
    }

    /// It raised this, which is so much in words.
    fn refused(&self, error: Bound<'_, PyAny>, text: &Bound<'_, PyString>) -> PyResult<()> {
        guard(|| {
            let text = text.to_string_lossy().into_owned();
            self.hear(Err(Refusal { text, error: PyErr::from_value(error) }))
        })
    }

    /// What it gave is awaited elsewhere. Says whether nobody waits for that any more; else it is cancelled by this function.
    fn awaits(&self, cancel: Py<PyAny>) -> PyResult<bool> {
        guard(|| {
            let mut ear = lock(self.0.get()?);
            // On the loop's own thread it may have ended by now.
            let Some(ear) = &mut *ear else { return Ok(false) };
            ear.turn = None;
            let mut interest = lock(&ear.interest);
            if matches!(*interest, Interest::Gone) {
                return Ok(true);
            }
            *interest = Interest::Cancels(cancel);
            Ok(false)
        })
    }

    /// What is awaited has this, and what cancels it has that. The call that waits for the answer is where nobody looks.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(ear) = self.0.here() else { return Ok(()) };
        if let Some(ear) = &*lock(ear)
            && let Interest::Cancels(cancel) = &*lock(&ear.interest)
        {
            visit.call(cancel)?;
        }
        Ok(())
    }
}

/// Why there is no answer: for the core, and for Python. Both are made where the interpreter is at hand.
pub struct Refusal {
    /// In words.
    pub text: String,
    /// What was raised.
    pub error: PyErr,
}

impl Refusal {
    /// What comes of a body, on a thread that may not have the interpreter.
    pub fn catch<T>(name: &str, body: impl FnOnce(Python<'_>) -> Result<T, Failure>) -> Result<T, Self> {
        Python::try_attach(|py| guard(|| body(py)).map_err(|error| Self::new(py, error)))
            .unwrap_or_else(|| Err(Self::gone(name)))
    }

    /// Nobody is there who could answer.
    pub fn gone(name: &str) -> Self {
        let text = format!("the event loop or the interpreter that {name} belongs to has ended");
        Self { error: PyRuntimeError::new_err(text.clone()), text }
    }

    fn new(py: Python<'_>, error: PyErr) -> Self {
        let kind = error.get_type(py).name().map_or_else(|_| "exception".to_owned(), |it| it.to_string());
        let text = error.value(py).str().map(|it| it.to_string()).unwrap_or_default();
        Self { text: if text.is_empty() { kind } else { format!("{kind}: {text}") }, error }
    }
}
