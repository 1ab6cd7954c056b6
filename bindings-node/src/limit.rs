//! Limits: what they are asked, and what is reserved of them.

use leasehold::Micros;
use leasehold::client::{read_cost, read_ttl};
use leasehold::error::Result as CoreResult;
use leasehold::limits::{Amount, Verdict};
use leasehold::value::Value;
use napi::bindgen_prelude::Uint32Array;
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin};
use crate::granted::Granted;
use crate::leasehold::UNIT;
use crate::table::{self, Fresh, NativeLimit, NativeReservation, Numbered};
use crate::value::Arg;
use crate::{hit, registers};

/// Several limits as one.
#[napi(catch_unwind)]
pub fn limit_group(members: Uint32Array) -> Answer<Fresh<NativeLimit>> {
    hit("limit_group");
    let members: Vec<Numbered<NativeLimit>> = members.iter().copied().map(Numbered::new).collect();
    let members: CoreResult<Vec<_>> = members.iter().map(|member| member.get().map(Some)).collect();
    Answer(members.and_then(NativeLimit::group).map(Fresh))
}

/// The same limit, at a cost of its own.
#[napi(catch_unwind)]
pub fn limit_at_cost(limit: Numbered<NativeLimit>, cost: Arg) -> Answer<Fresh<NativeLimit>> {
    hit("limit_at_cost");
    let at_cost = || limit.get()?.at_cost_by(&cost.named("cost")?).map(Fresh);
    Answer(at_cost())
}

/// Takes of the limit in the registers the cost in the registers at once, if its store is in memory. What it says is in the
/// registers then: flags, and in the upper half of their cell which of its limits binds; when it would be allowed, and when as
/// if never used, in milliseconds; and the words of what remains.
#[napi(catch_unwind)]
pub fn take_of_limit() -> Answer<()> {
    hit("take_of_limit");
    let cost = Value::Number(registers::cost());
    let said = table::lent(registers::number(), |limit: &NativeLimit| limit.take_by_now(&cost).transpose());
    Answer(said.flatten().map(|verdict| match verdict {
        Some(verdict) => registers::write(told(&verdict)),
        None => registers::write([0]),
    }))
}

/// Whether it was asked at all (1), whether it is allowed (2), whether it will ever be (4), whether it is ever as if never
/// used (8), and so on.
fn told(verdict: &Verdict) -> [u64; 7] {
    let Verdict { allowed, binding, remaining, retry_after, reset_after } = verdict;
    let flags = 1
        | u64::from(*allowed) << 1
        | u64::from(retry_after.is_some()) << 2
        | u64::from(reset_after.is_some()) << 3;
    let time = |time: &Option<Micros>| time.map_or(0, |time| UNIT.count(time).to_bits());
    let [first, second, third, fourth] = remaining.words();
    let head = flags | (*binding as u64) << 32;
    [head, time(retry_after), time(reset_after), first, second, third, fourth]
}

/// The names of its limits, as they are counted.
#[napi(catch_unwind)]
pub fn limit_names(limit: Numbered<NativeLimit>) -> Answer<Vec<String>> {
    hit("limit_names");
    Answer(limit.get().map(|limit| limit.names().map(ToString::to_string).collect()))
}

/// Asks by one of the verbs that wait for nothing but the store.
#[napi(catch_unwind)]
pub fn limit_ask(
    env: &Env,
    limit: Numbered<NativeLimit>,
    verb: String,
    about: Arg,
) -> Result<Soon<Option<Granted>>> {
    hit("limit_ask");
    let call = Box::pin(async move {
        let told = limit.get()?.ask(&verb, &about.named(NativeLimit::about(&verb))?, UNIT).await?;
        Ok(Some(Granted::Value(told)))
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
) -> Result<Soon<Option<Granted>>> {
    hit("limit_wait");
    let call = Box::pin(async move {
        let answer = limit.get()?.wait_by(&cost.named("cost")?, &options.options()?, UNIT).await?;
        Ok(Some(Granted::Value(answer.to_value(UNIT))))
    });
    begin(env, call)
}

/// Takes a cost for the time being, or waits until it can be taken.
#[napi(catch_unwind)]
pub fn limit_reserve(
    env: &Env,
    limit: Numbered<NativeLimit>,
    waits: bool,
    cost: Arg,
    options: Arg,
) -> Result<Soon<Option<Granted>>> {
    hit("limit_reserve");
    let call = Box::pin(async move {
        let (cost, options) = (cost.named("cost")?, options.options()?);
        Ok(Some(Granted::Reservation(limit.get()?.reserve_by(waits, &cost, &options, UNIT).await?)))
    });
    begin(env, call)
}

/// Prolongs a reservation that was made elsewhere.
#[napi(catch_unwind)]
pub fn limit_renew(
    env: &Env,
    limit: Numbered<NativeLimit>,
    id: Arg,
    ttl: Arg,
) -> Result<Soon<Option<Granted>>> {
    hit("limit_renew");
    let call = Box::pin(async move {
        limit.get()?.renew_reservation_by(&id.named("id")?, &ttl.named("ttl")?, UNIT).await?;
        Ok(None)
    });
    begin(env, call)
}

/// Prolongs it. It is lent only: whoever ends it meanwhile takes it.
#[napi(catch_unwind)]
pub fn reservation_renew(env: &Env, reservation: u32, ttl: Arg) -> Result<Soon<Option<Granted>>> {
    hit("reservation_renew");
    let ttl = ttl.named("ttl").and_then(|ttl| read_ttl(&ttl, UNIT));
    let renewal = ttl.and_then(|ttl| table::lent(reservation, |lent: &NativeReservation| lent.renew_by(ttl)));
    begin(env, Box::pin(async move { renewal?.await.map(|()| None) }))
}

/// The digits of a cost.
#[napi(catch_unwind)]
pub fn limit_cost(cost: Arg) -> Answer<String> {
    hit("limit_cost");
    Answer(cost.named("cost").and_then(|cost| read_cost(&cost)).map(|cost| cost.to_string()))
}

/// Ends it: what it charged is given back, or stays charged, of which that may be only so much. The number is free from then on.
#[napi(catch_unwind)]
pub fn reservation_end(
    env: &Env,
    reservation: Numbered<NativeReservation>,
    give_back: bool,
    kept: Option<String>,
) -> Result<Soon<Option<Granted>>> {
    hit("reservation_end");
    let reservation = reservation.take();
    let call = Box::pin(async move {
        let reservation = reservation?;
        let kept = kept.map(|kept| Amount::parse(&kept)).transpose()?;
        if give_back { reservation.refund().await } else { reservation.commit_kept(kept).await }
            .map(|()| None)
    });
    begin(env, call)
}
