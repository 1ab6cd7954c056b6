//! The host's function that reads an account's next nonce from its chain.

use leasehold::client::NonceSource;
use leasehold::nonce::Nonce;
use leasehold::runtime::BoxedFuture;
use napi::bindgen_prelude::Promise;
use napi::threadsafe_function::ThreadsafeFunction;
use napi::{Error, Status};

use crate::value::Arg;

/// `(slot) => Promise<bigint | number>`: weak, so that it does not keep the process alive, and not
/// error-first. The face makes it of the user's function, so that it always returns a promise.
pub type Asker = ThreadsafeFunction<String, Promise<Arg>, String, Status, false, true>;

/// Asks the host, from whatever thread.
pub struct HostNonces {
    asker: Asker,
}

impl HostNonces {
    /// Asks by this function.
    pub fn new(asker: Asker) -> Self {
        HostNonces { asker }
    }
}

impl NonceSource for HostNonces {
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<Nonce, String>> {
        Box::pin(async move {
            // `call_async_catch`: plain `call_async` ends the process when the function throws.
            let asked = async { self.asker.call_async_catch(slot.to_owned()).await?.await };
            let answer = asked.await.map_err(|error: Error| error.reason)?;
            let nonce = answer
                .named("the answer")
                .and_then(|value| value.as_u64().map_err(|error| error.within("the answer")));
            nonce.map_err(|error| error.message().to_owned())
        })
    }
}
