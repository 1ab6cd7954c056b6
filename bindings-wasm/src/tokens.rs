//! Tokens of a wallet: selecting, what the source tells, and who has what.

use std::rc::Rc;
use std::sync::Arc;

use js_sys::{Array, Function};
use leasehold::amount::Amount;
use leasehold::client::{Change, SelectOptions, SharedSource, TokensInMemory, TokensOptions};
use leasehold::tokens::Spender;
use leasehold::tokens::Token;
use leasehold::{Code, Error};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::leasehold::UNIT;
use crate::runtime::prepare;
use crate::tasks::{Answer, call};
use crate::things::{self, HostSelection, Thing, put, selection as selected, source, take, tokens as of};
use crate::token_source::HostTokens;
use crate::{entered, value};

/// What the face knows of a selection: its number, what it is worth, what of that is change, its fence, and of each token
/// its id, amount, age and fence.
pub fn facts(selection: HostSelection) -> JsValue {
    let amount = |amount: Amount| JsValue::from(amount.to_string());
    let words = Array::new();
    for word in [amount(selection.sum()), amount(selection.change()), selection.fence().into()] {
        words.push(&word);
    }
    for (token, fence) in selection.tokens().iter().zip(selection.fences()) {
        for word in [(&*token.id).into(), amount(token.amount), token.since.into(), (*fence).into()] {
            words.push(&word);
        }
    }
    words.unshift(&put(Thing::Selection(Rc::new(selection))).into());
    words.into()
}

/// The tokens of a wallet. They come from a source in memory, or from the host's functions, of which `page` is one then.
#[wasm_bindgen]
pub fn tokens(
    leasehold: u32,
    wallet: &JsValue,
    options: &JsValue,
    memory: Option<u32>,
    page: Option<Function>,
    spent: Option<Function>,
) -> Result<u32, JsValue> {
    entered();
    prepare()?;
    let wallet = value::text(wallet, "wallet")?;
    let options = TokensOptions::default().read(&value::options(options)?, UNIT).map_err(Failure::from)?;
    let source: SharedSource = match (memory, page) {
        (Some(memory), _) => Arc::new(source(memory)?),
        (None, Some(page)) => Arc::new(HostTokens { page, spent }),
        (None, None) => {
            return Err(
                Failure::new(Code::Internal, "a wallet without a source; report this as a bug").into()
            );
        }
    };
    let tokens =
        things::leasehold(leasehold)?.tokens_with(&wallet, source, options).map_err(Failure::from)?;
    Ok(put(Thing::Tokens(tokens)))
}

/// Selects tokens for an amount.
#[wasm_bindgen(js_name = tokensSelect)]
pub fn tokens_select(tokens: u32, target: &JsValue, options: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (tokens, target) = (of(tokens)?, value::named(target, "target")?);
    let target = Amount::read(&target).map_err(|error| Failure::from(error.within("target")))?;
    let options = SelectOptions::read(&value::options(options)?, UNIT).map_err(Failure::from)?;
    let work = async move { Ok(Answer::Selection(tokens.select_with(target, options).await?)) };
    Ok(call(number, Box::pin(work)))
}

/// Hears what the source tells.
#[wasm_bindgen(js_name = tokensHear)]
pub fn tokens_hear(tokens: u32, change: &JsValue, currency: &JsValue) -> Result<(), JsValue> {
    entered();
    let change = Change::read(&value::named(change, "change")?);
    let change = change.map_err(|error| Failure::from(error.within("change")))?;
    let currency = match currency.is_undefined() || currency.is_null() {
        true => None,
        false => Some(value::text(currency, "currency")?),
    };
    Ok(of(tokens)?.hear(change, currency.as_deref()).map_err(Failure::from)?)
}

/// Who has which of these tokens, or of all.
#[wasm_bindgen(js_name = tokensLocks)]
pub fn tokens_locks(tokens: u32, ids: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (tokens, ids) = (of(tokens)?, value::named(ids, "ids")?);
    let work = async move { Ok(Answer::Value(value::write(tokens.locks_by(&ids, UNIT).await?))) };
    Ok(call(number, Box::pin(work)))
}

/// Gives back what a spender has locked: how many that were.
#[wasm_bindgen(js_name = tokensReleaseSpender)]
pub fn tokens_release_spender(tokens: u32, spender: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (tokens, spender) = (of(tokens)?, value::named(spender, "spender")?);
    let spender = Spender::read(&spender).map_err(|error| Failure::from(error.within("spender")))?;
    let work = async move { Ok(Answer::Number(tokens.release_spender(spender).await?)) };
    Ok(call(number, Box::pin(work)))
}

/// How many are locked by anybody.
#[wasm_bindgen(js_name = tokensCountLocked)]
pub fn tokens_count_locked(tokens: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let tokens = of(tokens)?;
    Ok(call(number, Box::pin(async move { Ok(Answer::Number(tokens.count_locked().await?)) })))
}

/// What selections asked for so far.
#[wasm_bindgen(js_name = tokensCounts)]
pub fn tokens_counts(tokens: u32) -> Result<JsValue, JsValue> {
    entered();
    Ok(value::write(of(tokens)?.counts().to_value()))
}

/// What this handle has done so far.
#[wasm_bindgen(js_name = tokensStatistics)]
pub fn tokens_statistics(tokens: u32) -> Result<JsValue, JsValue> {
    entered();
    Ok(value::write(of(tokens)?.statistics().to_value(UNIT)))
}

/// Prolongs all of them.
#[wasm_bindgen(js_name = selectionRenew)]
pub fn selection_renew(selection: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let selection = selected(selection)?;
    let work = async move {
        selection.renew().await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// Says that they are spent, or gives them back; the number is free from then on.
#[wasm_bindgen(js_name = selectionEnd)]
pub fn selection_end(selection: u32, spent: bool, number: u32) -> Result<u32, JsValue> {
    entered();
    let held = selected(selection)?;
    take(selection);
    let work = async move {
        match spent {
            true => held.spent().await?,
            false => held.release().await?,
        }
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// Tokens in the memory of this instance.
#[wasm_bindgen(js_name = tokensInMemory)]
pub fn tokens_in_memory() -> u32 {
    entered();
    put(Thing::Source(TokensInMemory::default()))
}

/// Adds a token.
#[wasm_bindgen(js_name = sourceAdd)]
pub fn source_add(memory: u32, wallet: &JsValue, currency: &JsValue, token: &JsValue) -> Result<(), JsValue> {
    entered();
    let (wallet, currency) = (value::text(wallet, "wallet")?, value::text(currency, "currency")?);
    let token = Token::read(&value::named(token, "token")?);
    let token = token.map_err(|error: Error| Failure::from(error.within("token")))?;
    source(memory)?.add(&wallet, &currency, token);
    Ok(())
}

/// A token is spent.
#[wasm_bindgen(js_name = sourceSpend)]
pub fn source_spend(memory: u32, wallet: &JsValue, id: &JsValue) -> Result<(), JsValue> {
    entered();
    source(memory)?.spend(&value::text(wallet, "wallet")?, &value::text(id, "id")?);
    Ok(())
}

/// What a wallet has of a currency, in digits.
#[wasm_bindgen(js_name = sourceSum)]
pub fn source_sum(memory: u32, wallet: &JsValue, currency: &JsValue) -> Result<String, JsValue> {
    entered();
    Ok(source(memory)?.sum(&value::text(wallet, "wallet")?, &value::text(currency, "currency")?).to_string())
}
