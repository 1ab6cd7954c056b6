//! The wish to stop waiting, handed from an `AbortSignal` to a future.

use std::future::Future;
use std::sync::Arc;

use napi_derive::napi;
use tokio::sync::Notify;

use crate::answer::Failure;

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
        Cancel { wish: Arc::new(Notify::new()) }
    }

    /// Makes the wish. It is remembered if the call has not begun to wait.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.wish.notify_one();
    }
}

impl Cancel {
    /// Runs `work` until it ends or the wish is made; then `work` is dropped, which must leave nothing behind.
    pub fn guard<T, W>(&self, work: W) -> impl Future<Output = Result<T, Failure>> + use<T, W>
    where
        W: Future<Output = Result<T, Failure>>,
    {
        let wish = self.wish.clone();
        async move {
            tokio::select! {
                biased;
                result = work => result,
                () = wish.notified() => Err(Failure { code: "cancelled", message: "the caller gave up waiting".into() }),
            }
        }
    }
}
