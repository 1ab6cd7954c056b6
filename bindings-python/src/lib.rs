//! The Python face of leasehold, at its border: values, errors, waiting and asyncio. It holds no rule of its own.
//!
//! Every function that Python can call has its body in [`guard::guard`]; the tests hold the source to it.

// Who waits for a lock of this crate may have the interpreter, so none is held longer than it seems to be.
#![warn(clippy::significant_drop_in_scrutinee)]

mod amount;
mod answer;
mod asked;
mod asyncio;
mod bell;
mod blocking;
mod bridge;
mod callback;
mod checks;
mod errors;
mod face;
mod forgotten;
mod granted;
mod guard;
mod kept;
mod lease;
mod limit;
mod lock;
mod opening;
mod options;
mod pool;
mod process;
mod runtime;
mod token_source;
mod tokens;
#[cfg(feature = "trial")]
mod trial;
mod value;

use pyo3::prelude::*;

/// The compiled half of the package `leasehold`.
#[pymodule]
mod _leasehold {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::answer::LimitAnswer;
    #[pymodule_export]
    use super::asyncio::Pending;
    #[pymodule_export]
    use super::bridge::Bridge;
    #[pymodule_export]
    use super::checks::{fence_admit, fence_texts, recommended_ttl};
    #[pymodule_export]
    use super::granted::Granted;
    #[pymodule_export]
    use super::lease::Lease;
    #[pymodule_export]
    use super::limit::{Limit, Reservation};
    #[pymodule_export]
    use super::lock::{Lock, Locked};
    #[pymodule_export]
    use super::opening::{Leasehold, Quorum, open, open_aio, open_quorum, open_quorum_aio};
    #[pymodule_export]
    use super::pool::Pool;
    #[pymodule_export]
    use super::token_source::TokensInMemory;
    #[pymodule_export]
    use super::tokens::{Selection, Tokens};
    #[pymodule_export]
    use super::version;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::guard::guard(|| {
            let py = module.py();
            super::process::claim_interpreter(py)?;
            // Not among the exports above: a module within a module refuses another interpreter in words of its own.
            #[cfg(feature = "trial")]
            module.add_wrapped(pyo3::wrap_pymodule!(super::trial::trial))?;
            super::errors::classes(py)?;
            super::process::watch_forks(py)?;
            Ok(super::runtime::watch_exit(py)?)
        })
    }
}

/// The version of the compiled half; the package is of the same.
#[pyfunction]
fn version() -> PyResult<&'static str> {
    guard::guard(|| Ok(env!("CARGO_PKG_VERSION")))
}
