//! What needs no store: the checks of fences, and the time to live that outlasts a chain of thieves.

use leasehold::client::Unit;
use leasehold::{fence, handshake};
use pyo3::prelude::*;

use crate::guard::guard;
use crate::options::Options;
use crate::value::Arg;

/// The highest fence from now on, unless the holder is late.
#[pyfunction]
pub fn fence_admit(highest: Arg, fence: Arg) -> PyResult<u64> {
    guard(|| Ok(fence::admit(&highest.named("highest")?, &fence.named("fence")?)?))
}

/// The script for Redis and the condition in SQL.
#[pyfunction]
pub fn fence_texts() -> PyResult<(&'static str, &'static str)> {
    guard(|| Ok((fence::SCRIPT, fence::SQL)))
}

/// The time to live, in seconds, that outlasts a chain of thieves who wait one behind the other, with this confidence.
#[pyfunction]
#[pyo3(signature = (**options))]
pub fn recommended_ttl(options: Option<Options>) -> PyResult<f64> {
    guard(|| {
        Ok(options.unwrap_or_default().read(|options| handshake::recommended_ttl(options, Unit::Seconds))?)
    })
}
