//! Limits: what they are asked, and what is reserved of them.

use leasehold::error::Result as CoreResult;
use napi::bindgen_prelude::Uint32Array;
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin};
use crate::granted::Granted;
use crate::hit;
use crate::leasehold::UNIT;
use crate::table::{Fresh, NativeLimit, NativeReservation, Numbered};
use crate::value::Arg;

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
        let told = limit.get()?.ask(&verb, &cost.named("cost")?, UNIT).await?;
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

/// Ends it: what it charged is given back, or stays charged. The number is free from then on.
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
