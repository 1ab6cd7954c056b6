//! Limits: what they are asked, and what is reserved of them.

use leasehold::amount::Amount;
use leasehold::client::{LimitAnswer, Said, WaitOptions, read_ttl};
use leasehold::error::Result as CoreResult;
use leasehold::value::{Options, Value};
use leasehold::{Error, MILLISECOND};
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::{Answer, misused};
use crate::calls::{Soon, begin};
use crate::cancel::{Cancel, guarded};
use crate::hit;
use crate::leasehold::UNIT;
use crate::pool::Granted;
use crate::table::{Fresh, NativeLimit, NativeReservation, Numbered};
use crate::value::Arg;

/// Several limits as one.
#[napi(catch_unwind)]
pub fn limit_group(members: Vec<Numbered<NativeLimit>>) -> Answer<Fresh<NativeLimit>> {
    hit("limit_group");
    let members: CoreResult<Vec<_>> = members.iter().map(|member| member.get().map(Some)).collect();
    Answer(members.and_then(NativeLimit::group).map(Fresh))
}

/// The same limit, at a cost of its own.
#[napi(catch_unwind)]
pub fn limit_at_cost(limit: Numbered<NativeLimit>, cost: Arg) -> Answer<Fresh<NativeLimit>> {
    hit("limit_at_cost");
    Answer(limit.get().and_then(|limit| Ok(Fresh(limit.at_cost(amount(cost)?)))))
}

/// Asks by one of the verbs that wait for nothing but the store.
#[napi(catch_unwind)]
pub fn limit_ask(
    env: &Env,
    limit: Numbered<NativeLimit>,
    verb: String,
    cost: Arg,
) -> Result<Soon<Option<Granted>>> {
    hit("limit_ask");
    let call = Box::pin(async move {
        let (limit, cost) = (limit.get()?, amount(cost)?);
        let told = match verb.as_str() {
            "take" => told(&limit.take(cost).await?),
            "increment" => Value::Bool(limit.increment(cost).await?),
            "increment_or_fail" => told(&limit.increment_or_fail(cost).await?),
            "peek" => told(&limit.peek(cost).await?),
            "exceeded" => Value::Bool(limit.exceeded(cost).await?),
            "limit_exceeded" => text(limit.limit_exceeded(cost).await?),
            "remaining" => text(Some(limit.remaining().await?)),
            "used" => text(Some(limit.used().await?)),
            "refund" => told(&limit.refund(cost).await?),
            "decrement" => told(&limit.decrement(cost).await?),
            "reset" => limit.reset().await?.into(),
            _ => return Err(misused("a limit was asked by a verb that there is not")),
        };
        Ok(Some(Granted::Told(told)))
    });
    begin(env, call)
}

/// Waits until a cost is allowed, and charges it.
#[napi(catch_unwind)]
pub fn limit_wait(
    env: &Env,
    limit: Numbered<NativeLimit>,
    cost: Arg,
    options: Arg,
    cancel: Option<&Cancel>,
) -> Result<Soon<Option<Granted>>> {
    hit("limit_wait");
    let call = Box::pin(async move {
        let (cost, options) = (amount(cost)?, WaitOptions::default().read(&options.options()?, UNIT)?);
        Ok(Some(Granted::Told(told(&limit.get()?.wait(cost, options).await?))))
    });
    begin(env, guarded(cancel, call))
}

/// Takes a cost for the time being, or waits until it can be taken.
#[napi(catch_unwind)]
pub fn limit_reserve(
    env: &Env,
    limit: Numbered<NativeLimit>,
    waits: bool,
    cost: Arg,
    ttl: Arg,
    options: Arg,
    cancel: Option<&Cancel>,
) -> Result<Soon<Option<Granted>>> {
    hit("limit_reserve");
    let call = Box::pin(async move {
        let (limit, cost, options) = (limit.get()?, amount(cost)?, options.options()?);
        let waits = if waits {
            Some(WaitOptions::default().read(&options, UNIT)?)
        } else {
            // It came by itself, and is an option all the same.
            let mut options = Options::of_call(&options)?;
            options.take("ttl", |_| Ok(()))?;
            options.end()?;
            None
        };
        let ttl = read_ttl(&ttl.named("ttl")?, UNIT)?.ok_or_else(|| Error::invalid("ttl", "is missing"))?;
        let reserved = match waits {
            Some(options) => limit.wait_to_reserve(cost, ttl, options).await?,
            None => limit.reserve(cost, ttl).await?.map_err(|refused| refused.error())?,
        };
        Ok(Some(Granted::Reserved(reserved)))
    });
    begin(env, guarded(cancel, call))
}

/// The garbage collector has taken the limit.
#[napi(catch_unwind)]
pub fn limit_forget(limit: Numbered<NativeLimit>) {
    hit("limit_forget");
    limit.forget();
}

/// Ends it: what it charged is given back, or stays charged. It is forgotten, whatever becomes of that.
#[napi(catch_unwind)]
pub fn reservation_end(
    env: &Env,
    reservation: Numbered<NativeReservation>,
    give_back: bool,
) -> Result<Soon<Option<Granted>>> {
    hit("reservation_end");
    let reservation = reservation.take();
    let call = Box::pin(async move {
        let reservation = reservation?;
        if give_back { reservation.refund().await } else { reservation.commit().await }.map(|()| None)
    });
    begin(env, call)
}

/// The garbage collector has taken the reservation.
#[napi(catch_unwind)]
pub fn reservation_forget(reservation: Numbered<NativeReservation>) {
    hit("reservation_forget");
    reservation.forget();
}

/// Whether it is allowed, what remains, the times in milliseconds, the limit, who says so.
pub fn told(answer: &LimitAnswer) -> Value {
    let LimitAnswer { allowed, limit, remaining, retry_after, reset_after, said } = answer;
    let time =
        |time: &Option<u64>| time.map_or(Value::Null, |time| Value::Number(time as f64 / MILLISECOND as f64));
    let said = match said {
        Said::Store => "store",
        Said::Memory => "memory",
        Said::Outage => "outage",
    };
    let limit = text(limit.as_ref().map(|name| name.as_str()));
    let remaining = text(Some(remaining));
    Value::List(vec![
        Value::Bool(*allowed),
        remaining,
        time(retry_after),
        time(reset_after),
        limit,
        said.into(),
    ])
}

/// Digits, as an amount may be larger than any number of a `Value`; a name.
fn text(text: Option<impl ToString>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_string()))
}

fn amount(cost: Arg) -> CoreResult<Amount> {
    Amount::read(&cost.named("cost")?).map_err(|error| error.within("cost"))
}
