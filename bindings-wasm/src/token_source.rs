//! The host's functions that list tokens.

use std::sync::Arc;

use js_sys::Function;
use leasehold::client::{PageAsk, TokenSource, read_ids, write_ids};
use leasehold::error::Result as CoreResult;
use leasehold::runtime::BoxedFuture;
use leasehold::tokens::Page;
use leasehold::value::Value;
use wasm_bindgen::JsValue;

use crate::failure::Failure;
use crate::runtime::tick;
use crate::tasks::settled;
use crate::{host, value};

/// Asks the host.
pub struct HostTokens {
    pub page: Function,
    pub spent: Option<Function>,
}

impl TokenSource for HostTokens {
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>> {
        Box::pin(async move { answered(&self.page, ask.to_value(), Page::read).await })
    }

    fn verifies(&self) -> bool {
        self.spent.is_some()
    }

    fn spent(&self, wallet: Arc<str>, ids: Vec<Arc<str>>) -> BoxedFuture<'_, Result<Vec<Arc<str>>, String>> {
        Box::pin(async move {
            let Some(spent) = &self.spent else { return Ok(Vec::new()) };
            answered(spent, Value::List(vec![(&*wallet).into(), write_ids(&ids)]), read_ids).await
        })
    }
}

async fn answered<T>(
    function: &Function,
    ask: Value,
    read: fn(&Value) -> CoreResult<T>,
) -> Result<T, String> {
    // As of nonces; shared with them it would take more of the small module.
    let called = function.call1(&JsValue::UNDEFINED, &value::write(ask));
    tick();
    let answer = match called {
        Ok(promise) => settled(&promise).await,
        Err(exception) => Err(exception),
    };
    let answer = answer.map_err(|exception| host::words(&exception))?;
    let answer = value::named(&answer, "the answer")
        .and_then(|value| read(&value).map_err(|error| Failure::from(error.within("the answer"))));
    answer.map_err(Failure::words)
}
