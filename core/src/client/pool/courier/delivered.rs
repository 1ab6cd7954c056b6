//! Replies on their way to those who asked.

use futures_channel::oneshot;

use crate::Micros;
use crate::error::Result;
use crate::slots::{Grant, Reply};

/// What comes back for a request.
pub(in crate::client) type Delivery = oneshot::Receiver<Result<Delivered>>;

/// A reply on its way to its caller. Leases that it grants are given back if it is dropped unread.
pub(in crate::client) struct Delivered {
    pub(in crate::client) reply: Option<Reply>,
    /// The store's time of the reply.
    pub now: Micros,
    /// When the request was first sent, on the local clock: no lease is counted from later.
    pub sent: Micros,
    pub(super) refund: Box<dyn Refund>,
}

impl Delivered {
    /// The reply, for whose grants the caller answers from now on.
    pub fn take(mut self) -> Reply {
        self.reply.take().unwrap_or(Reply::Undefined)
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        match self.reply.take() {
            Some(Reply::Granted(grants)) => self.refund.refund(grants),
            #[cfg(feature = "tokens")]
            Some(Reply::Partly { grants, .. }) => self.refund.refund(grants),
            _ => {}
        }
    }
}

/// Who gives back what nobody has seen.
#[cfg(not(target_arch = "wasm32"))]
pub(super) trait Refund: Send + Sync {
    fn refund(&self, grants: Vec<Grant>);
}
/// The same.
#[cfg(target_arch = "wasm32")]
pub(super) trait Refund {
    fn refund(&self, grants: Vec<Grant>);
}
