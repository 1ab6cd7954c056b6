//! Tokens that are held.

use leasehold::value::Value;
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin};
use crate::granted::Granted;
use crate::hit;
use crate::table::{NativeSelection, Numbered};

/// What it is worth, what of that is change, its fence, and of each token its id, amount, age and fence. Amounts are
/// digits, as they may be larger than any number of a `Value`.
pub fn words_of(selection: &NativeSelection) -> Vec<Value> {
    let mut words = vec![digits(selection.sum()), digits(selection.change()), selection.fence().into()];
    for (token, &fence) in selection.tokens().iter().zip(selection.fences()) {
        words.extend([(&*token.id).into(), digits(token.amount), token.since.into(), fence.into()]);
    }
    words
}

/// Prolongs all of them.
#[napi(catch_unwind)]
pub async fn selection_renew(selection: Numbered<NativeSelection>) -> Answer<()> {
    hit("selection_renew");
    Answer(async { selection.get()?.renew().await }.await)
}

/// Says that they are spent, or gives them back. The number is free from then on.
#[napi(catch_unwind)]
pub fn selection_end(
    env: &Env,
    selection: Numbered<NativeSelection>,
    spent: bool,
) -> Result<Soon<Option<Granted>>> {
    hit("selection_end");
    selection.forget();
    let call = Box::pin(async move {
        let selection = selection.get()?;
        if spent { selection.spent().await } else { selection.release().await }.map(|()| None)
    });
    begin(env, call)
}

fn digits(amount: leasehold::amount::Amount) -> Value {
    Value::Text(amount.to_string())
}
