//! For tests: a store that has to be waited for.

use std::sync::Arc;

use crate::id::{Name, PoolName};
use crate::limits::{Answer, Envelope, Reply, Request};
use crate::runtime::TokioRuntime;
use crate::store::ledger::MemoryLedger;
use crate::store::{LimitStore, MemoryStore, StoreError, StoreLedger};

/// A store that does with an envelope what it is told to.
pub(super) struct Elsewhere<F>(pub F);

impl<F, A> StoreLedger for Elsewhere<F>
where
    F: Fn(Envelope) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answer, StoreError>> + Send,
{
    fn charge_now(&self, _: &Request) -> Option<Reply> {
        None
    }

    async fn charge(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        (self.0)(envelope.clone()).await
    }
}

/// What is behind one, by the host's clock.
pub(super) fn ledger() -> Arc<MemoryLedger> {
    ledger_of(&MemoryStore::new(TokioRuntime::store_clock()), "limits")
}

pub(super) fn ledger_of(store: &MemoryStore, scope: &str) -> Arc<MemoryLedger> {
    let name = |text| Name::new(text).unwrap();
    store.ledger(&PoolName { namespace: name("test"), pool: name(scope) })
}
