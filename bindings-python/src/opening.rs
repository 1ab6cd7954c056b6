//! Opening a store, and pools in it.

use std::sync::Arc;

use leasehold::client::native::{self, NativeLeasehold};
use leasehold::client::{ReadNonce, Unit};
use leasehold::value::Value;
use leasehold::{Code, Error};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::callback::{Callback, with_cause};
use crate::errors::Failure;
use crate::face::Face;
use crate::guard::guard;
use crate::pool::Pool;
use crate::process::Homebound;
use crate::{runtime, value};

/// Opens a store: a URL (`memory:`, `memory:name`, `redis://…`), or the lock block of a paymaster's configuration.
#[pyfunction]
#[pyo3(signature = (url=None, **options))]
pub fn open(
    py: Python<'_>,
    url: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Leasehold> {
    guard(|| Leasehold::open(py, Face::Blocking, url, options))
}

/// The same for asyncio.
#[pyfunction]
#[pyo3(signature = (url=None, **options))]
pub fn open_aio(
    py: Python<'_>,
    url: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Leasehold> {
    guard(|| Leasehold::open(py, Face::Asyncio, url, options))
}

/// An open store. Opens pools; use it with `with`, or call `close()`.
#[pyclass(frozen, module = "leasehold")]
pub struct Leasehold {
    core: Homebound<Arc<NativeLeasehold>>,
    face: Face,
}

impl Leasehold {
    fn open(
        py: Python<'_>,
        face: Face,
        url: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Self, Failure> {
        let target = url.map_or(Ok(Value::Null), |url| value::read(url, "url"))?;
        let options = value::read_options(options)?;
        let tokio = runtime::local(py)?.engine.handle().clone();
        let core = native::open(&target, &options, Unit::Seconds, tokio)?;
        Ok(Self { core: Homebound::new(Arc::new(core)), face })
    }

    fn core(&self) -> Result<&Arc<NativeLeasehold>, Failure> {
        self.core.get(Code::InvalidArgument, "store")
    }
}

#[pymethods]
impl Leasehold {
    /// Opens a pool of slots; makes it if it is not there yet.
    #[pyo3(signature = (name, **options))]
    fn pool(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        guard(|| {
            let core = self.core()?.clone();
            let name = value::read_text(name, "name")?;
            let read_nonce = take_read_nonce(self.face, options)?;
            let options = core.pool_defaults().read(&value::read_options(options)?, Unit::Seconds)?;
            let face = self.face;
            self.face.run(py, async move {
                let pool = with_cause(core.pool(&name, options, read_nonce)).await?;
                Ok(Pool::new(pool, face))
            })
        })
    }

    /// Opens no more pools, and ends acquisitions that wait for a slot with `Cancelled`. Leases that are held stay held until
    /// they are given back.
    fn close(&self) -> PyResult<()> {
        guard(|| {
            self.core()?.close();
            Ok(())
        })
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| Ok(this))
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        guard(|| {
            self.core()?.close();
            Ok(())
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| {
            Ok(match self.core() {
                Ok(core) => format!("<leasehold {core:?}>"),
                Err(_) => "<leasehold of another process>".to_owned(),
            })
        })
    }
}

/// Takes the callable out of the options, which hold plain data otherwise.
fn take_read_nonce(face: Face, options: Option<&Bound<'_, PyDict>>) -> Result<Option<ReadNonce>, Failure> {
    let Some(options) = options else { return Ok(None) };
    let Some(function) = options.get_item("read_nonce")? else { return Ok(None) };
    options.del_item("read_nonce")?;
    if function.is_none() {
        return Ok(None);
    }
    if !function.is_callable() {
        return Err(Error::invalid("read_nonce", "must be a function that takes a slot's id").into());
    }
    let callback = match face {
        Face::Blocking => Callback::blocking(function),
        Face::Asyncio => Callback::asyncio(function)?,
    };
    Ok(Some(Arc::new(callback)))
}
