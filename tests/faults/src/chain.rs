//! A toy chain: what it says of each account's nonce, and how often it was asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use leasehold::client::{NonceSource, ReadNonce};
use leasehold::runtime::BoxedFuture;

/// Answers at once, until it is told to hang or to fail.
#[derive(Debug, Default)]
pub struct Chain {
    nonces: Mutex<HashMap<String, u64>>,
    reads: AtomicU64,
    hangs: Mutex<bool>,
}

impl Chain {
    /// A chain on which these accounts have this nonce.
    pub fn new(accounts: &[&str], nonce: u64) -> Arc<Self> {
        let chain = Chain::default();
        accounts.iter().for_each(|account| chain.set(account, nonce));
        Arc::new(chain)
    }

    /// Sets the next nonce of an account.
    pub fn set(&self, account: &str, nonce: u64) {
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner).insert(account.to_owned(), nonce);
    }

    /// Answers nobody any more, or everybody again from the next question on.
    pub fn hang(&self, hangs: bool) {
        *self.hangs.lock().unwrap_or_else(PoisonError::into_inner) = hangs;
    }

    /// How often it was asked.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// As a pool takes it.
    pub fn source(self: &Arc<Self>) -> Option<ReadNonce> {
        Some(Arc::new(Source(self.clone())))
    }
}

struct Source(Arc<Chain>);

impl NonceSource for Source {
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<u64, String>> {
        Box::pin(async move {
            let chain = &self.0;
            chain.reads.fetch_add(1, Ordering::SeqCst);
            if *chain.hangs.lock().unwrap_or_else(PoisonError::into_inner) {
                std::future::pending::<()>().await;
            }
            let nonces = chain.nonces.lock().unwrap_or_else(PoisonError::into_inner);
            nonces.get(slot).copied().ok_or_else(|| "no such account".to_owned())
        })
    }
}
