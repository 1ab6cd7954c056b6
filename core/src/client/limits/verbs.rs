//! What limits are asked by languages: a verb and values in, a value out.

use std::time::Duration;

use super::options::WaitOptions;
use super::{Limit, LimitAnswer, Reservation};
use crate::Micros;
use crate::client::Unit;
use crate::client::options::read_ttl;
use crate::error::{Code, Error, Result};
use crate::limits::{Amount, Verdict};
use crate::runtime::Runtime;
use crate::value::{Options, Value};

impl<R: Runtime> Limit<R> {
    /// What [`Self::ask`] is asked about by this verb, as errors name it.
    #[doc(hidden)]
    pub fn about(verb: &str) -> &'static str {
        if verb.ends_with("_reservation") { "id" } else { "cost" }
    }

    /// Asks by the name of a method that waits for nothing but the store: `take`, `increment`, `increment_or_fail`, `peek`,
    /// `exceeded`, `limit_exceeded`, `remaining`, `used`, `refund`, `decrement`, `reset`; and, of an id for a cost,
    /// `commit_reservation` (of an id, or of a list of it and what stays charged), `refund_reservation`. Amounts come back as digits,
    /// and answers as [`LimitAnswer::to_value`].
    ///
    /// # Errors
    /// As the method; `invalid_argument` naming `cost`, or `id`.
    #[doc(hidden)]
    pub async fn ask(&self, verb: &str, cost: &Value, unit: Unit) -> Result<Value> {
        let id = || cost.as_text().map_err(|error| error.within("id"));
        match verb {
            "commit_reservation" => return Ok(self.commit_reservation_by(cost).await?.into()),
            "refund_reservation" => return Ok(self.refund_reservation(id()?).await?.into()),
            _ => {}
        }
        let cost = read_cost(cost)?;
        let told = match verb {
            "take" => self.take(cost).await?.to_value(unit),
            "increment" => Value::Bool(self.increment(cost).await?),
            "increment_or_fail" => self.increment_or_fail(cost).await?.to_value(unit),
            "peek" => self.peek(cost).await?.to_value(unit),
            "exceeded" => Value::Bool(self.exceeded(cost).await?),
            "limit_exceeded" => text(self.limit_exceeded(cost).await?),
            "remaining" => text(Some(self.remaining().await?)),
            "used" => text(Some(self.used().await?)),
            "refund" => self.refund(cost).await?.to_value(unit),
            "decrement" => self.decrement(cost).await?.to_value(unit),
            "reset" => self.reset().await?.into(),
            _ => return Err(Error::new(Code::Internal, "no limit has this verb; report this as a bug")),
        };
        Ok(told)
    }

    async fn commit_reservation_by(&self, what: &Value) -> Result<()> {
        let (id, cost) = match what {
            Value::List(parts) if let [id, cost] = parts.as_slice() => (id, Some(cost)),
            id => (id, None),
        };
        let id = id.as_text().map_err(|error| error.within("id"))?;
        self.commit_reservation_kept(id, cost.map(read_cost).transpose()?).await
    }

    /// [`Limit::commit_reservation_at`], if it is said what stays charged, or [`Limit::commit_reservation`].
    ///
    /// # Errors
    /// As these.
    #[doc(hidden)]
    pub async fn commit_reservation_kept(&self, id: &str, kept: Option<Amount>) -> Result<()> {
        self.reserved(id)?.commit_kept(kept).await
    }

    /// [`Limit::renew_reservation`] of what a language gives.
    ///
    /// # Errors
    /// As that; `invalid_argument` naming `id` or `ttl`.
    #[doc(hidden)]
    pub async fn renew_reservation_by(&self, id: &Value, ttl: &Value, unit: Unit) -> Result<()> {
        let id = id.as_text().map_err(|error| error.within("id"))?;
        self.renew_reservation(id, Duration::from_micros(needed_ttl(ttl, unit)?)).await
    }

    /// [`Limit::verdict_now`] of what a language gives.
    ///
    /// # Errors
    /// As [`Limit::take`]; `invalid_argument` naming `cost`.
    #[doc(hidden)]
    pub fn take_by_now(&self, cost: &Value) -> Option<Result<Verdict>> {
        match read_cost(cost) {
            Ok(cost) => self.verdict_now(cost),
            Err(error) => Some(Err(error)),
        }
    }

    /// [`Limit::at_cost`] of what a language gives.
    ///
    /// # Errors
    /// `invalid_argument` naming `cost`.
    #[doc(hidden)]
    pub fn at_cost_by(&self, cost: &Value) -> Result<Self> {
        Ok(self.at_cost(read_cost(cost)?))
    }

    /// [`Limit::wait`] by the options of a language.
    ///
    /// # Errors
    /// As [`Limit::wait`]; `invalid_argument` naming what is wrong.
    #[doc(hidden)]
    pub async fn wait_by(&self, cost: &Value, options: &Value, unit: Unit) -> Result<LimitAnswer> {
        let (cost, options) = (read_cost(cost)?, WaitOptions::default().read(options, unit)?);
        self.wait_with(cost, options).await
    }

    /// [`Limit::reserve`], or [`Limit::wait_to_reserve`] if it `waits`, by the options of a language, of which `ttl` is one. A
    /// refusal is the error `limited`.
    ///
    /// # Errors
    /// As these; `invalid_argument` naming what is wrong.
    #[doc(hidden)]
    pub async fn reserve_by(
        &self,
        waits: bool,
        cost: &Value,
        options: &Value,
        unit: Unit,
    ) -> Result<Reservation<R>> {
        let (cost, (ttl, waiting)) = (read_cost(cost)?, read_reserving(waits, options, unit)?);
        match waiting {
            Some(waiting) => self.wait_to_reserve_for(cost, ttl, waiting).await,
            None => self.reserve_for(cost, ttl, None).await?.map_err(|refused| refused.error()),
        }
    }
}

impl<R: Runtime> Reservation<R> {
    /// [`Reservation::commit_at`], if it is said what stays charged, or [`Reservation::commit`].
    ///
    /// # Errors
    /// As these.
    #[doc(hidden)]
    pub async fn commit_kept(self, kept: Option<Amount>) -> Result<()> {
        match kept {
            Some(cost) => self.commit_at(cost).await,
            None => self.commit().await,
        }
    }

    /// Its [`LimitAnswer::to_value`], with its `id`.
    #[doc(hidden)]
    #[must_use]
    pub fn to_value(&self, unit: Unit) -> Value {
        let mut told = self.answer().to_value(unit);
        if let Value::Map(entries) = &mut told {
            entries.push(("id".into(), Value::Text(self.id())));
        }
        told
    }
}

impl LimitAnswer {
    /// `allowed`, `remaining` (digits), `retry_after`, `reset_after`, `limit`, `said` ([`Said::as_str`](super::Said::as_str)).
    #[doc(hidden)]
    #[must_use]
    pub fn to_value(&self, unit: Unit) -> Value {
        let time = |time: Option<Micros>| time.map_or(Value::Null, |time| Value::Number(unit.count(time)));
        Value::map([
            ("allowed", Value::Bool(self.allowed)),
            ("remaining", text(Some(self.remaining))),
            ("retry_after", time(self.retry_after_micros)),
            ("reset_after", time(self.reset_after_micros)),
            ("limit", text(self.limit.as_ref())),
            ("said", self.said.as_str().into()),
        ])
    }
}

/// How long a reservation lasts, and how it is waited for if it is.
fn read_reserving(waits: bool, value: &Value, unit: Unit) -> Result<(Micros, Option<WaitOptions>)> {
    let mut options = Options::of_call(value)?;
    let ttl = options.take("ttl", Ok)?;
    let waiting = match waits {
        true => Some(WaitOptions::default().take(&mut options, unit)?),
        false => None,
    };
    options.end()?;
    Ok((needed_ttl(ttl.unwrap_or(&Value::Null), unit)?, waiting))
}

fn needed_ttl(ttl: &Value, unit: Unit) -> Result<Micros> {
    read_ttl(ttl, unit)?.ok_or_else(|| Error::invalid("ttl", "is missing"))
}

/// A cost, as a language gives it.
///
/// # Errors
/// `invalid_argument` naming `cost`.
#[doc(hidden)]
pub fn read_cost(cost: &Value) -> Result<Amount> {
    Amount::read(cost).map_err(|error| error.within("cost"))
}

/// Digits, as an amount may be larger than any number of a [`Value`]; a name.
fn text(text: Option<impl ToString>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_string()))
}
