//! The wish to stop waiting, handed from an `AbortSignal` to a future.

use std::future::Future;
use std::sync::Arc;

use leasehold::error::Result;
use leasehold::{Code, Error};
use napi_derive::napi;
use tokio::sync::Notify;

use crate::hit;

/// Made by the face for each call that has a signal, and used for one call only.
#[napi]
pub struct Cancel {
    wish: Arc<Notify>,
}

#[napi]
impl Cancel {
    /// A wish that has not been made yet.
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "only JavaScript makes one")]
    pub fn new() -> Self {
        hit("new");
        Cancel { wish: Arc::new(Notify::new()) }
    }

    /// Makes the wish. It is remembered if the call has not begun to wait.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        hit("cancel");
        self.wish.notify_one();
    }
}

/// Runs `work` until it ends or the wish is made; then `work` is dropped, which must leave nothing behind.
pub fn guarded<T, W>(cancel: Option<&Cancel>, work: W) -> impl Future<Output = Result<T>> + use<T, W>
where
    W: Future<Output = Result<T>>,
{
    let wish = cancel.map(|cancel| cancel.wish.clone());
    async move {
        let Some(wish) = wish else { return work.await };
        tokio::select! {
            biased;
            result = work => result,
            () = wish.notified() => Err(Error::new(Code::Cancelled, "the caller gave up waiting")),
        }
    }
}
