//! The host's function that reads a nonce from the chain.

use js_sys::Function;
use leasehold::client::NonceSource;
use leasehold::nonce::Nonce;
use leasehold::runtime::BoxedFuture;
use wasm_bindgen::JsValue;

use crate::failure::Failure;
use crate::runtime::tick;
use crate::tasks::settled;
use crate::{host, value};

/// `readNonce` of a pool.
pub struct HostNonces(pub Function);

impl NonceSource for HostNonces {
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<Nonce, String>> {
        Box::pin(async move {
            let called = self.0.call1(&JsValue::UNDEFINED, &slot.into());
            tick();
            let answer = match called {
                Ok(promise) => settled(&promise).await,
                Err(exception) => Err(exception),
            };
            let answer = answer.map_err(|exception| host::words(&exception))?;
            match value::whole(&answer, "the nonce") {
                Ok(Some(nonce)) => Ok(nonce),
                Ok(None) => Err("it gave nothing".to_owned()),
                Err(Failure::Ours(error)) => Err(error.message().to_owned()),
                Err(Failure::Passed(exception)) => Err(host::words(&exception)),
            }
        })
    }
}
