//! Handles: a store, opened.

use leasehold::client::native::NativeLeasehold;
use leasehold::client::{LimitOptions, ReadNonce, SharedSource, TokensInMemory, TokensOptions, Unit};
use leasehold::store::Finding;
use leasehold::value::Value;
use napi_derive::napi;
use std::sync::Arc;

use crate::answer::{Answer, misused};
use crate::hit;
use crate::nonce_source::{Asker, HostNonces};
use crate::runtime;
use crate::table::{Fresh, NativeLimit, NativeLock, NativePool, NativeTokens, Numbered};
use crate::token_source::{HostTokens, TokensAsker};
use crate::value::{Arg, Out};

/// JavaScript's durations.
pub const UNIT: Unit = Unit::Milliseconds;

/// Opens a store.
#[napi(catch_unwind)]
pub async fn open(target: Arg, options: Arg) -> Answer<Fresh<NativeLeasehold>> {
    hit("open");
    let open = || {
        // The path within a map of configuration is the field, as in the core.
        let target = target.options().map_err(|error| match error.field() {
            Some("options") => leasehold::Error::invalid("url", "must be text or a configuration"),
            _ => error,
        })?;
        leasehold::client::native::open(&target, &options.options()?, UNIT, runtime::handle()?)
    };
    Answer(open().map(Fresh))
}

/// Opens a pool. `read_nonce` is the host's function, or nothing.
#[napi(catch_unwind)]
pub async fn pool(
    leasehold: Numbered<NativeLeasehold>,
    name: Arg,
    options: Arg,
    read_nonce: Option<Asker>,
) -> Answer<Fresh<NativePool>> {
    hit("pool");
    let source = read_nonce.map(|asker| Arc::new(HostNonces::new(asker)) as ReadNonce);
    let open = async {
        let leasehold = leasehold.get()?;
        let name = name.text("name")?;
        let options: Value = options.options()?;
        let options = leasehold.pool_defaults().read(&options, UNIT)?;
        leasehold.pool_with(&name, options, source).await
    };
    Answer(open.await.map(Fresh))
}

/// A lock of one name or several.
#[napi(catch_unwind)]
pub fn lock(leasehold: Numbered<NativeLeasehold>, names: Arg, options: Arg) -> Answer<Fresh<NativeLock>> {
    hit("lock");
    let lock = || leasehold.get()?.lock_by(&names.named("names")?, &options.options()?, UNIT).map(Fresh);
    Answer(lock())
}

/// A limit of this name.
#[napi(catch_unwind)]
pub fn limit(leasehold: Numbered<NativeLeasehold>, name: Arg, options: Arg) -> Answer<Fresh<NativeLimit>> {
    hit("limit");
    let limit = || {
        let (name, options) = (name.text("name")?, options.options()?);
        leasehold.get()?.limit_with(&name, &LimitOptions::read(&options, UNIT)?).map(Fresh)
    };
    Answer(limit())
}

/// Registers what an action allows.
#[napi(catch_unwind)]
pub fn limit_register(leasehold: Numbered<NativeLeasehold>, action: Arg, options: Arg) -> Answer<()> {
    hit("limit_register");
    let register = || {
        let (action, options) = (action.text("action")?, options.options()?);
        leasehold.get()?.register_with(&action, &LimitOptions::read(&options, UNIT)?)
    };
    Answer(register())
}

/// The limit that a registered action has for a value.
#[napi(catch_unwind)]
pub fn limit_of(leasehold: Numbered<NativeLeasehold>, action: Arg, value: Arg) -> Answer<Fresh<NativeLimit>> {
    hit("limit_of");
    let limit = || leasehold.get()?.limit_of_by(&action.text("action")?, &value.named("value")?).map(Fresh);
    Answer(limit())
}

/// The tokens of a wallet. They come from a source in memory, or from the host's functions, of which `page` is one then.
#[napi(catch_unwind)]
pub fn tokens(
    leasehold: Numbered<NativeLeasehold>,
    wallet: Arg,
    options: Arg,
    memory: Option<Numbered<TokensInMemory>>,
    page: Option<TokensAsker>,
    spent: Option<TokensAsker>,
) -> Answer<Fresh<NativeTokens>> {
    hit("tokens");
    let tokens = || {
        let wallet = wallet.text("wallet")?;
        let options = TokensOptions::default().read(&options.options()?, UNIT)?;
        let source: SharedSource = match (memory, page) {
            (Some(memory), _) => Arc::new(memory.get()?.clone()),
            (None, Some(page)) => Arc::new(HostTokens::new(page, spent)),
            (None, None) => return Err(misused("a wallet without a source of tokens")),
        };
        leasehold.get()?.tokens_with(&wallet, source, options).map(Fresh)
    };
    Answer(tokens())
}

/// Looks whether the store is fit.
#[napi(catch_unwind)]
pub async fn doctor(leasehold: Numbered<NativeLeasehold>) -> Answer<Out> {
    hit("doctor");
    Answer(async { Ok(Out(Finding::list(&leasehold.get()?.doctor().await?))) }.await)
}

/// Opens no more pools and limits, and ends what waits.
#[napi(catch_unwind)]
pub fn close(leasehold: Numbered<NativeLeasehold>) -> Answer<()> {
    hit("close");
    Answer(leasehold.get().map(NativeLeasehold::close))
}
