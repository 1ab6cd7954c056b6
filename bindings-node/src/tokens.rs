//! Tokens of a wallet: selecting, what the source tells, and who has what.

use leasehold::amount::Amount;
use leasehold::client::{Change, SelectOptions};
use leasehold::tokens::Spender;
use leasehold::value::Value;
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin};
use crate::granted::Granted;
use crate::hit;
use crate::leasehold::UNIT;
use crate::table::{NativeTokens, Numbered};
use crate::value::{Arg, Out};

/// Selects tokens for an amount.
#[napi(catch_unwind)]
pub fn tokens_select(
    env: &Env,
    tokens: Numbered<NativeTokens>,
    target: Arg,
    options: Arg,
) -> Result<Soon<Option<Granted>>> {
    hit("tokens_select");
    let call = Box::pin(async move {
        let target = Amount::read(&target.named("target")?).map_err(|error| error.within("target"))?;
        let options = SelectOptions::read(&options.options()?, UNIT)?;
        Ok(Some(Granted::Selection(tokens.get()?.select_with(target, options).await?)))
    });
    begin(env, call)
}

/// Hears what the source tells.
#[napi(catch_unwind)]
pub fn tokens_hear(tokens: Numbered<NativeTokens>, change: Arg, currency: Arg) -> Answer<()> {
    hit("tokens_hear");
    let hear = || {
        let change = Change::read(&change.named("change")?).map_err(|error| error.within("change"))?;
        let currency = match currency.named("currency")? {
            Value::Null => None,
            currency => Some(currency.as_text().map_err(|error| error.within("currency"))?.to_owned()),
        };
        tokens.get()?.hear(change, currency.as_deref())
    };
    Answer(hear())
}

/// Who has which of these tokens, or of all.
#[napi(catch_unwind)]
pub async fn tokens_locks(tokens: Numbered<NativeTokens>, ids: Arg) -> Answer<Out> {
    hit("tokens_locks");
    let locks = async { tokens.get()?.locks_by(&ids.named("ids")?, UNIT).await.map(Out) };
    Answer(locks.await)
}

/// Gives back what a spender has locked: how many that were.
#[napi(catch_unwind)]
pub async fn tokens_release_spender(tokens: Numbered<NativeTokens>, spender: Arg) -> Answer<u32> {
    hit("tokens_release_spender");
    let release = async {
        let spender = Spender::read(&spender.named("spender")?).map_err(|error| error.within("spender"))?;
        tokens.get()?.release_spender(spender).await
    };
    Answer(release.await)
}

/// How many are locked by anybody.
#[napi(catch_unwind)]
pub async fn tokens_count_locked(tokens: Numbered<NativeTokens>) -> Answer<u32> {
    hit("tokens_count_locked");
    Answer(async { tokens.get()?.count_locked().await }.await)
}

/// What selections asked for so far.
#[napi(catch_unwind)]
pub fn tokens_counts(tokens: Numbered<NativeTokens>) -> Answer<Out> {
    hit("tokens_counts");
    Answer(tokens.get().map(|tokens| Out(tokens.counts().to_value())))
}

/// What this handle has done so far.
#[napi(catch_unwind)]
pub fn tokens_statistics(tokens: Numbered<NativeTokens>) -> Answer<Out> {
    hit("tokens_statistics");
    Answer(tokens.get().map(|tokens| Out(tokens.statistics().to_value(UNIT))))
}
