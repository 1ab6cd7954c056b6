//! Opening a store, and pools, locks, limits and wallets in it.

use leasehold::Code;
use leasehold::client::Unit;
use leasehold::client::native::{self, NativeLeasehold, NativeQuorum};
use leasehold::store::Finding;
use leasehold::value::Value;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::amount::Whole;
use crate::blocking::Effort;
use crate::callback::{Functions, nonce_source};
use crate::errors::Failure;
use crate::face::Face;
use crate::guard::guard;
use crate::kept::Kept;
use crate::limit::Limit;
use crate::lock::Lock;
use crate::options::Options;
use crate::pool::Pool;
use crate::process::Homebound;
use crate::runtime;
use crate::tokens::Tokens;
use crate::value::Arg;

/// Opens a store: a URL (`memory:`, `memory:name`, `redis://…`, `redis+cluster://…`, `redis+sentinel://…`), or the lock block of a
/// paymaster's configuration.
#[pyfunction]
#[pyo3(signature = (url=Value::from("memory:").into(), **options), text_signature = "(url='memory:', **options)")]
pub fn open(py: Python<'_>, url: Arg, options: Option<Options>) -> PyResult<Leasehold> {
    guard(|| Leasehold::open(py, Face::Blocking, url, options))
}

/// The same for asyncio.
#[pyfunction]
#[pyo3(signature = (url=Value::from("memory:").into(), **options), text_signature = "(url='memory:', **options)")]
pub fn open_aio(py: Python<'_>, url: Arg, options: Option<Options>) -> PyResult<Leasehold> {
    guard(|| Leasehold::open(py, Face::Asyncio, url, options))
}

/// Opens independent servers, 1 to 9, of which a majority must grant each lock.
#[pyfunction]
#[pyo3(signature = (servers, **options))]
pub fn open_quorum(py: Python<'_>, servers: Arg, options: Option<Options>) -> PyResult<Quorum> {
    guard(|| Quorum::open(py, Face::Blocking, servers, options))
}

/// The same for asyncio.
#[pyfunction]
#[pyo3(signature = (servers, **options))]
pub fn open_quorum_aio(py: Python<'_>, servers: Arg, options: Option<Options>) -> PyResult<Quorum> {
    guard(|| Quorum::open(py, Face::Asyncio, servers, options))
}

/// An open store. Opens pools; use it with `with`, or call `close()`.
#[pyclass(frozen, module = "leasehold")]
pub struct Leasehold {
    core: Homebound<NativeLeasehold>,
    face: Face,
}

impl Leasehold {
    fn open(py: Python<'_>, face: Face, url: Arg, options: Option<Options>) -> Result<Self, Failure> {
        let target = url.named("url")?;
        let tokio = runtime::local(py)?.engine.handle().clone();
        let core = options
            .unwrap_or_default()
            .read(|options| native::open(&target, options, Unit::Seconds, tokio))?;
        Ok(Self { core: Homebound::new(core, Code::InvalidArgument, "store"), face })
    }
}

#[pymethods]
impl Leasehold {
    /// Opens a pool of slots; makes it if it is not there yet.
    #[pyo3(signature = (name, *, read_nonce=None, **options), text_signature = "($self, name, **options)")]
    fn pool(
        &self,
        py: Python<'_>,
        name: Arg,
        read_nonce: Option<&Bound<'_, PyAny>>,
        options: Option<Options>,
    ) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (core, face) = (self.core.get()?.clone(), self.face);
            let name = name.text("name")?;
            let mut functions = Functions::default();
            let read_nonce =
                read_nonce.map(|function| nonce_source(function, face, &mut functions)).transpose()?;
            // There may be many slots.
            let options = py.detach(|| {
                options.unwrap_or_default().read(|options| core.pool_defaults().read(options, Unit::Seconds))
            })?;
            let pool = async move { core.pool_with(&name, options, read_nonce).await };
            let functions = Kept::new(functions);
            let kept = functions.clone();
            let call = async move { Ok(Pool::new(pool.await?, face, functions.take().unwrap_or_default())) };
            face.begin(py, Effort::Long, Some(kept), call, Ok)
        })
    }

    /// A lock of one name, or of several that are held together or not at all. Asks nothing of the store yet.
    #[pyo3(signature = (names, **options))]
    fn lock(&self, names: Arg, options: Option<Options>) -> PyResult<Lock> {
        guard(|| {
            let (core, names) = (self.core.get()?, names.named("names")?);
            let lock =
                options.unwrap_or_default().read(|options| core.lock_by(&names, options, Unit::Seconds))?;
            Ok(Lock::new(lock, self.face))
        })
    }

    /// A limit of this name: a rate, a budget, or what may be in flight. Asks nothing of the store yet.
    #[pyo3(signature = (name, *, max=None, **options), text_signature = "($self, name, **options)")]
    fn limit(&self, name: Arg, max: Option<Whole>, options: Option<Options>) -> PyResult<Limit> {
        guard(|| Limit::open(self.core.get()?, self.face, &name.text("name")?, max, options))
    }

    /// Registers what an action allows, once: each of its values has a limit of its own, which `limit_of` opens.
    #[pyo3(signature = (action, *, max=None, **options), text_signature = "($self, action, **options)")]
    fn register(&self, action: Arg, max: Option<Whole>, options: Option<Options>) -> PyResult<()> {
        guard(|| Limit::register(self.core.get()?, &action.text("action")?, max, options))
    }

    /// The limit that a registered action has for a value. Asks nothing of the store yet.
    fn limit_of(&self, action: Arg, value: Whole) -> PyResult<Limit> {
        guard(|| Limit::of(self.core.get()?, self.face, &action.text("action")?, value))
    }

    /// Limits of this handle that are charged as one, all of them or none. None is left out.
    fn group(&self, limits: &Bound<'_, PyAny>) -> PyResult<Limit> {
        guard(|| Limit::group(self.core.get()?, self.face, limits))
    }

    /// The tokens of a wallet, which a source lists. Asks nothing of the store nor of the source yet.
    #[pyo3(signature = (wallet, *, source=None, **options), text_signature = "($self, wallet, **options)")]
    fn tokens(
        &self,
        wallet: Arg,
        source: Option<&Bound<'_, PyAny>>,
        options: Option<Options>,
    ) -> PyResult<Tokens> {
        guard(|| Tokens::open(self.core.get()?, self.face, wallet.text("wallet")?, source, options))
    }

    /// Looks whether the store is fit.
    fn doctor(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let doctor =
            |core: NativeLeasehold| async move { core.doctor().await.map(|found| Finding::list(&found)) };
        guard(|| self.face.ask(py, &self.core, doctor))
    }

    /// Opens no more pools and limits, and ends calls that wait for them with `Cancelled`. Leases that are held stay held until
    /// they are given back.
    fn close(&self) -> PyResult<()> {
        guard(|| self.core.get().map(|core| core.close()))
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| Ok(this))
    }

    /// In a forked child there is nothing to close, nor anything to say in place of what ends it.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        guard(|| {
            if let Some(core) = self.core.here() {
                core.close();
            }
            Ok(())
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold")))
    }
}

/// Independent servers that grant locks by majority. Use it with `with`, or call `close()`.
#[pyclass(frozen, module = "leasehold")]
pub struct Quorum {
    core: Homebound<NativeQuorum>,
    face: Face,
}

impl Quorum {
    fn open(py: Python<'_>, face: Face, servers: Arg, options: Option<Options>) -> Result<Self, Failure> {
        let servers = servers.named("servers")?;
        let tokio = runtime::local(py)?.engine.handle().clone();
        let core = options
            .unwrap_or_default()
            .read(|options| native::open_quorum(&servers, options, Unit::Seconds, tokio))?;
        Ok(Self { core: Homebound::new(core, Code::InvalidArgument, "quorum"), face })
    }
}

#[pymethods]
impl Quorum {
    /// A lock of one name, or of several that are held together or not at all. Asks nothing of the servers yet.
    #[pyo3(signature = (names, **options))]
    fn lock(&self, names: Arg, options: Option<Options>) -> PyResult<Lock> {
        guard(|| {
            let (core, names) = (self.core.get()?, names.named("names")?);
            let lock =
                options.unwrap_or_default().read(|options| core.lock_by(&names, options, Unit::Seconds))?;
            Ok(Lock::new(lock, self.face))
        })
    }

    /// Looks whether the servers are fit.
    fn doctor(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let doctor =
            |core: NativeQuorum| async move { core.doctor().await.map(|found| Finding::list(&found)) };
        guard(|| self.face.ask(py, &self.core, doctor))
    }

    /// Ends acquisitions that wait with `Cancelled`. Locks that are held stay held until they are given back.
    fn close(&self) -> PyResult<()> {
        guard(|| self.core.get().map(|core| core.close()))
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| Ok(this))
    }

    /// In a forked child there is nothing to close, nor anything to say in place of what ends it.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        guard(|| {
            if let Some(core) = self.core.here() {
                core.close();
            }
            Ok(())
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold Quorum")))
    }
}
