//! The host's function that reads an account's next nonce from the chain.

use std::fmt::Display;
use std::sync::Arc;

use crate::nonce::Nonce;
use crate::runtime::{BoxedFuture, MaybeSend, MaybeSync};

/// Reads nonces from a chain.
pub trait NonceSource: MaybeSend + MaybeSync {
    /// The next nonce of the account whose slot has this id, pending transactions counted; or what went
    /// wrong, in words.
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<Nonce, String>>;
}

/// A function is a nonce source: it gets the slot's id, and may fail with any error that has words.
impl<F, A, E> NonceSource for F
where
    F: Fn(String) -> A + MaybeSend + MaybeSync,
    A: Future<Output = Result<Nonce, E>> + MaybeSend + 'static,
    E: Display,
{
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<Nonce, String>> {
        let nonce = self(slot.to_owned());
        Box::pin(async { nonce.await.map_err(|error| error.to_string()) })
    }
}

/// A nonce source that several leases share.
#[cfg(not(target_arch = "wasm32"))]
pub type ReadNonce = Arc<dyn NonceSource + Send + Sync>;
/// A nonce source that several leases share.
#[cfg(target_arch = "wasm32")]
pub type ReadNonce = Arc<dyn NonceSource>;
