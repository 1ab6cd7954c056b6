//! The host's function that reads an account's next nonce from the chain.

use std::sync::Arc;

use super::{BoxedFuture, MaybeSend, MaybeSync};
use crate::nonce::Nonce;

/// Reads nonces from a chain.
pub trait NonceSource: MaybeSend + MaybeSync {
    /// The next nonce of the account whose slot has this id, pending transactions counted; or what went
    /// wrong, in words.
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<Nonce, String>>;
}

/// A function is a nonce source: it gets the slot's id.
impl<F, A> NonceSource for F
where
    F: Fn(String) -> A + MaybeSend + MaybeSync,
    A: Future<Output = Result<Nonce, String>> + MaybeSend + 'static,
{
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<Nonce, String>> {
        Box::pin(self(slot.to_owned()))
    }
}

/// A nonce source that several leases share.
#[cfg(not(target_arch = "wasm32"))]
pub type ReadNonce = Arc<dyn NonceSource + Send + Sync>;
/// A nonce source that several leases share.
#[cfg(target_arch = "wasm32")]
pub type ReadNonce = Arc<dyn NonceSource>;
