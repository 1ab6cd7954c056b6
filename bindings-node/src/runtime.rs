//! The runtime of the core's tasks.

use std::io;
use std::sync::LazyLock;

use leasehold::error::Result as CoreResult;
use leasehold::{Code, Error};
use tokio::runtime::{Builder, Handle, Runtime};

/// The process's. napi is never given it: it closes what it has as the last environment that loaded the addon ends, which may be
/// a worker's, while calls still wait. A closed runtime drops a task where somebody wakes it, under whatever locks that one has.
pub fn handle() -> CoreResult<Handle> {
    static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(of_one_thread);
    match &*RUNTIME {
        Ok(runtime) => Ok(runtime.handle().clone()),
        Err(error) => Err(Error::new(Code::Internal, format!("there is no thread for its work: {error}"))),
    }
}

/// What napi polls the slower calls in. A second one that it makes itself, as an environment comes after the last had ended, has
/// a thread for each processor.
pub fn for_napi() {
    if let Ok(runtime) = of_one_thread() {
        napi::bindgen_prelude::create_custom_tokio_runtime(runtime);
    }
}

/// One thread does the work of this library: it is waiting for a store, and more threads only wake each other.
fn of_one_thread() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).thread_name("leasehold").enable_all().build()
}
