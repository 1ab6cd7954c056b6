//! Limits: what they are asked, and what is reserved of them.

use std::rc::Rc;

use js_sys::Array;
use leasehold::client::{LimitOptions, read_cost, read_ttl};
use leasehold::limits::Amount;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::leasehold::UNIT;
use crate::runtime::prepare;
use crate::tasks::{Answer, call};
use crate::things::{self, HostLimit, HostReservation, Thing, limit as of, put};
use crate::{entered, value};

/// A reservation on its way to its caller. Given back if it does not arrive.
pub struct Reserved(Option<HostReservation>);

impl From<Reserved> for JsValue {
    fn from(mut reserved: Reserved) -> JsValue {
        reserved.0.take().map_or(JsValue::UNDEFINED, |reservation| {
            let told = value::write(reservation.to_value(UNIT));
            Array::of2(&put(Thing::Reservation(Rc::new(reservation))).into(), &told).into()
        })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(reservation) = self.0.take() {
            reservation.retract();
        }
    }
}

/// A limit of this name.
#[wasm_bindgen]
pub fn limit(leasehold: u32, name: &JsValue, options: &JsValue) -> Result<u32, JsValue> {
    entered();
    prepare()?;
    let (handle, name) = (things::leasehold(leasehold)?, value::text(name, "name")?);
    let options = LimitOptions::read(&value::options(options)?, UNIT).map_err(Failure::from)?;
    Ok(put(Thing::Limit(handle.limit_with(&name, &options).map_err(Failure::from)?)))
}

/// Registers what an action allows.
#[wasm_bindgen(js_name = limitRegister)]
pub fn limit_register(leasehold: u32, action: &JsValue, options: &JsValue) -> Result<(), JsValue> {
    entered();
    let (handle, action) = (things::leasehold(leasehold)?, value::text(action, "action")?);
    let options = LimitOptions::read(&value::options(options)?, UNIT).map_err(Failure::from)?;
    Ok(handle.register_with(&action, &options).map_err(Failure::from)?)
}

/// The limit that a registered action has for a value.
#[wasm_bindgen(js_name = limitOf)]
pub fn limit_of(leasehold: u32, action: &JsValue, value: &JsValue) -> Result<u32, JsValue> {
    entered();
    prepare()?;
    let (action, value) = (value::text(action, "action")?, value::named(value, "value")?);
    let limit = things::leasehold(leasehold)?.limit_of_by(&action, &value);
    Ok(put(Thing::Limit(limit.map_err(Failure::from)?)))
}

/// Several limits as one.
#[wasm_bindgen(js_name = limitGroup)]
pub fn limit_group(members: Vec<u32>) -> Result<u32, JsValue> {
    entered();
    let members = members.into_iter().map(of).collect::<Result<Vec<_>, _>>()?;
    Ok(put(Thing::Limit(HostLimit::group(members.iter().map(Some)).map_err(Failure::from)?)))
}

/// The same limit, at a cost of its own.
#[wasm_bindgen(js_name = limitAtCost)]
pub fn limit_at_cost(limit: u32, cost: &JsValue) -> Result<u32, JsValue> {
    entered();
    let cost = value::named(cost, "cost")?;
    Ok(put(Thing::Limit(of(limit)?.at_cost_by(&cost).map_err(Failure::from)?)))
}

/// Asks by one of the verbs that wait for nothing but the store.
#[wasm_bindgen(js_name = limitAsk)]
pub fn limit_ask(limit: u32, verb: &str, about: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (limit, about, verb) = (of(limit)?, value::named(about, HostLimit::about(verb))?, verb.to_owned());
    let work = async move { Ok(Answer::Value(value::write(limit.ask(&verb, &about, UNIT).await?))) };
    Ok(call(number, Box::pin(work)))
}

/// Waits until a cost is allowed, and charges it.
#[wasm_bindgen(js_name = limitWait)]
pub fn limit_wait(limit: u32, cost: &JsValue, options: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (limit, cost, options) = (of(limit)?, value::named(cost, "cost")?, value::options(options)?);
    let work = async move {
        let answer = limit.wait_by(&cost, &options, UNIT).await?;
        Ok(Answer::Value(value::write(answer.to_value(UNIT))))
    };
    Ok(call(number, Box::pin(work)))
}

/// Takes a cost for the time being, or waits until it can be taken.
#[wasm_bindgen(js_name = limitReserve)]
pub fn limit_reserve(
    limit: u32,
    waits: bool,
    cost: &JsValue,
    options: &JsValue,
    number: u32,
) -> Result<u32, JsValue> {
    entered();
    // A reservation's number is random.
    prepare()?;
    let (limit, cost, options) = (of(limit)?, value::named(cost, "cost")?, value::options(options)?);
    let work = async move {
        let reservation = limit.reserve_by(waits, &cost, &options, UNIT).await?;
        Ok(Answer::Reservation(Reserved(Some(reservation))))
    };
    Ok(call(number, Box::pin(work)))
}

/// Prolongs a reservation that was made elsewhere.
#[wasm_bindgen(js_name = limitRenew)]
pub fn limit_renew(limit: u32, id: &JsValue, ttl: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (limit, id, ttl) = (of(limit)?, value::named(id, "id")?, value::named(ttl, "ttl")?);
    let work = async move {
        limit.renew_reservation_by(&id, &ttl, UNIT).await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// Prolongs it. Whoever ends it meanwhile takes it.
#[wasm_bindgen(js_name = reservationRenew)]
pub fn reservation_renew(reservation: u32, ttl: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let ttl = read_ttl(&value::named(ttl, "ttl")?, UNIT).map_err(Failure::from)?;
    let renewal = things::lent_reservation(reservation)?.renew_by(ttl);
    let work = async move {
        renewal.await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// The digits of a cost.
#[wasm_bindgen(js_name = limitCost)]
pub fn limit_cost(cost: &JsValue) -> Result<String, JsValue> {
    entered();
    let cost = read_cost(&value::named(cost, "cost")?).map_err(Failure::from)?;
    Ok(cost.to_string())
}

/// Ends it: what it charged is given back, or stays charged, of which that may be only so much. Its number is free from then on.
#[wasm_bindgen(js_name = reservationEnd)]
pub fn reservation_end(
    reservation: u32,
    gives_back: bool,
    kept: Option<String>,
    number: u32,
) -> Result<u32, JsValue> {
    entered();
    let kept = kept.map(|kept| Amount::parse(&kept)).transpose().map_err(Failure::from)?;
    let reservation = things::reservation(reservation)?;
    let work = async move {
        match gives_back {
            true => reservation.refund().await?,
            false => reservation.commit_kept(kept).await?,
        }
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}
