//! Where tokens come from: the host's functions, or this process's memory.

use std::sync::Arc;

use leasehold::client::{PageAsk, TokenSource, TokensInMemory, read_ids, write_ids};
use leasehold::error::Result as CoreResult;
use leasehold::runtime::BoxedFuture;
use leasehold::tokens::{Page, Token};
use leasehold::value::Value;
use napi::bindgen_prelude::Promise;
use napi::threadsafe_function::ThreadsafeFunction;
use napi::{Error, Status};
use napi_derive::napi;

use crate::answer::Answer;
use crate::hit;
use crate::table::{Fresh, Numbered};
use crate::value::{Arg, Out};

/// `(ask) => Promise<answer>`: weak, so that it does not keep the process alive, and not error-first. The face makes it
/// of the user's function, so that it always returns a promise.
pub type TokensAsker = ThreadsafeFunction<Out, Promise<Arg>, Out, Status, false, true>;

/// Asks the host, from whatever thread.
pub struct HostTokens {
    page: TokensAsker,
    spent: Option<TokensAsker>,
}

impl HostTokens {
    /// Asks by these functions.
    pub fn new(page: TokensAsker, spent: Option<TokensAsker>) -> Self {
        HostTokens { page, spent }
    }
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
    asker: &TokensAsker,
    ask: Value,
    read: fn(&Value) -> CoreResult<T>,
) -> Result<T, String> {
    // `call_async_catch`: plain `call_async` ends the process when the function throws.
    let asked = async { asker.call_async_catch(Out(ask)).await?.await };
    let answer = asked.await.map_err(|error: Error| error.reason)?;
    let read =
        answer.named("the answer").and_then(|value| read(&value).map_err(|error| error.within("the answer")));
    read.map_err(|error| error.message().to_owned())
}

/// Tokens in this process's memory.
#[napi(catch_unwind)]
pub fn tokens_in_memory() -> Answer<Fresh<TokensInMemory>> {
    hit("tokens_in_memory");
    Answer(Ok(Fresh(TokensInMemory::default())))
}

/// Adds a token.
#[napi(catch_unwind)]
pub fn source_add(source: Numbered<TokensInMemory>, wallet: Arg, currency: Arg, token: Arg) -> Answer<()> {
    hit("source_add");
    let add = || {
        let (wallet, currency) = (wallet.text("wallet")?, currency.text("currency")?);
        let token = Token::read(&token.named("token")?).map_err(|error| error.within("token"))?;
        source.get().map(|source| source.add(&wallet, &currency, token))
    };
    Answer(add())
}

/// A token is spent.
#[napi(catch_unwind)]
pub fn source_spend(source: Numbered<TokensInMemory>, wallet: Arg, id: Arg) -> Answer<()> {
    hit("source_spend");
    let spend = || {
        let (wallet, id) = (wallet.text("wallet")?, id.text("id")?);
        source.get().map(|source| source.spend(&wallet, &id))
    };
    Answer(spend())
}

/// What a wallet has of a currency, in digits.
#[napi(catch_unwind)]
pub fn source_sum(source: Numbered<TokensInMemory>, wallet: Arg, currency: Arg) -> Answer<String> {
    hit("source_sum");
    let sum = || {
        let (wallet, currency) = (wallet.text("wallet")?, currency.text("currency")?);
        source.get().map(|source| source.sum(&wallet, &currency).to_string())
    };
    Answer(sum())
}
