//! How a limit is kept, and how it is waited for, as options of all languages.

use super::super::Unit;
use super::super::options::{priority, rest};
use crate::error::{Error, Result};
use crate::id::Name;
use crate::limits::{Amount, MAX_PERIOD, Rule};
use crate::value::{Options, Value};
use crate::{Micros, SECOND};

/// What a limit allows, and how; times are in microseconds.
///
/// | option | default | |
/// |---|---|---|
/// | `max` | | the most at once and in a period |
/// | `period` | | its length; 0 limits each request by itself |
/// | `kind` | refill | see [`LimitKind`] |
/// | `burst` | `max` | of GCRA: the most at once |
/// | `offset` | 0 | of a budget: when its periods begin, counted from the Unix epoch (a Thursday) |
/// | `outage` | closed | what is allowed while the store cannot be used |
/// | `scope` | one for all | limits of one scope can be charged as one; a cluster spreads scopes over its servers |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitOptions {
    /// How it is counted.
    pub kind: LimitKind,
    /// The most: up to 10^15 of what refills, 1,000 of what is in flight, 2^256 - 1 of the others. It may change at run time:
    /// what is used stays.
    pub max: Amount,
    /// How long a full refill takes, or a window or a budget lasts: up to 366 days. 0 limits each request by itself; what
    /// has no periods ([`LimitKind::Lifetime`], [`LimitKind::InFlight`]) takes nothing else.
    pub period: Micros,
    /// Of GCRA, the most at once: `max` by default.
    pub burst: Option<u64>,
    /// Of a budget, when its periods begin, counted from the Unix epoch: seven days begin on a Thursday.
    pub offset: Micros,
    /// What is allowed while the store cannot be used: nothing by default.
    pub outage: Outage,
    /// Limits of one scope can be charged as one. All of a namespace are in one by default.
    pub scope: Option<Name>,
}

/// How a limit is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitKind {
    /// Continuous refill: remaining = floor(min(max, max - used + max * elapsed / period)).
    #[default]
    Refill,
    /// The generic cell rate algorithm: one every `period / max`, and a burst ahead of that.
    Gcra,
    /// At most `max` in any window of a period's length.
    Rolling,
    /// So much, ever.
    Lifetime,
    /// So much in each period of the calendar, such as a day.
    Budget,
    /// So much at a time, by reservations that end.
    InFlight,
}

impl LimitKind {
    /// The length of a period, if one is given or none is needed.
    pub(in crate::client) fn period(self, given: Option<Micros>) -> Result<Micros> {
        match given {
            Some(period) => Ok(period),
            None if !self.has_periods() => Ok(0),
            None => Err(Error::invalid("period", "is missing")),
        }
    }

    fn has_periods(self) -> bool {
        !matches!(self, LimitKind::Lifetime | LimitKind::InFlight)
    }
}

/// What is allowed while the store cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// Nothing: takes fail with `store_unavailable`.
    #[default]
    Closed,
    /// What this process would be allowed if it were alone: of rates what the store allowed it before counts, of budgets and
    /// lifetimes all that it has seen used. The store is not told of what is taken meanwhile: a refund of that would give back what
    /// others took. What was asked before the outage was noticed the store may charge later, also where it was refused here.
    Open,
}

impl LimitOptions {
    /// So much in a period, by continuous refill.
    pub fn new(max: impl Into<Amount>, period: Micros) -> Self {
        LimitOptions {
            kind: LimitKind::Refill,
            max: max.into(),
            period,
            burst: None,
            offset: 0,
            outage: Outage::Closed,
            scope: None,
        }
    }

    /// The same of another kind.
    #[must_use]
    pub fn kind(self, kind: LimitKind) -> Self {
        LimitOptions { kind, ..self }
    }

    /// The same with another policy for outages.
    #[must_use]
    pub fn outage(self, outage: Outage) -> Self {
        LimitOptions { outage, ..self }
    }

    /// Reads options.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        let kind = options.take("kind", kind)?.unwrap_or_default();
        let Some(max) = options.take("max", Amount::read)? else {
            return Err(Error::invalid("max", "is missing"));
        };
        let length = options.take("period", |value| period(value, unit))?;
        let burst = options.take("burst", Value::as_u64)?;
        let offset = options.take("offset", |value| rest(value, unit))?.unwrap_or(0);
        let outage = options.take("outage", outage)?.unwrap_or_default();
        let scope = options.take("scope", |value| Name::new(value.as_text()?))?;
        options.end()?;
        let period = kind.period(length)?;
        let options = LimitOptions { kind, max, period, burst, offset, outage, scope };
        options.rule().map(|_| options)
    }

    /// Whether they say the same, however that is said.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let told = |options: &Self| (options.rule().ok(), options.outage, options.scope.clone());
        told(self) == told(other)
    }

    /// The rule that it is.
    ///
    /// # Errors
    /// `invalid_argument` naming the option that is out of its range.
    pub fn rule(&self) -> Result<Rule> {
        let LimitOptions { kind, max, period, burst, offset, .. } = *self;
        let small = max.saturating_u64();
        if period > 0 && !kind.has_periods() {
            return Err(Error::invalid(
                "period",
                "has no meaning for the kinds lifetime and in_flight; leave it out, or choose budget or refill",
            ));
        }
        if burst.is_some() && kind != LimitKind::Gcra {
            return Err(Error::invalid("burst", "has a meaning for the kind gcra only"));
        }
        if offset > 0 && (kind != LimitKind::Budget || offset >= period) {
            return Err(Error::invalid("offset", "has a meaning for budgets only, below their period"));
        }
        let rule = match kind {
            LimitKind::Refill => Rule::Refill { max: small, period },
            LimitKind::Gcra => Rule::Gcra { max: small, period, burst: burst.unwrap_or(small) },
            LimitKind::Rolling => Rule::Rolling { max: small, period },
            LimitKind::Lifetime => Rule::Lifetime { max },
            LimitKind::Budget => Rule::Budget { max, period, offset },
            LimitKind::InFlight => Rule::InFlight { max: small },
        };
        rule.check().map(|()| rule)
    }
}

/// How long something is waited for, in microseconds, and who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitOptions {
    /// How long: 5 s by default.
    pub timeout: Micros,
    /// Of those who wait in this process, the higher go before the lower, and equal ones in the order in which they came.
    pub priority: i16,
}

impl Default for WaitOptions {
    fn default() -> Self {
        WaitOptions { timeout: 5 * SECOND, priority: 0 }
    }
}

impl WaitOptions {
    /// Reads options over `self`, the defaults.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(self, value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        let read = self.take(&mut options, unit)?;
        options.end().map(|()| read)
    }

    /// Takes them out of other options.
    pub(super) fn take(mut self, options: &mut Options<'_>, unit: Unit) -> Result<Self> {
        if let Some(timeout) = options.take("timeout", |value| rest(value, unit))? {
            self.timeout = timeout;
        }
        if let Some(priority) = options.take("priority", priority)? {
            self.priority = priority;
        }
        Ok(self)
    }
}

/// A period; one that is not nothing is never rounded to nothing, which would limit each request by itself.
fn period(value: &Value, unit: Unit) -> Result<Micros> {
    let micros = value.as_number()? * unit.micros();
    let rounded = micros.round();
    if !(0.0..=MAX_PERIOD as f64).contains(&rounded) || (micros != 0.0 && rounded < 1.0) {
        return Err(Error::invalid("", "is out of range; 1 µs to 366 days, or 0, are allowed"));
    }
    Ok(rounded as Micros)
}

fn kind(value: &Value) -> Result<LimitKind> {
    match value.as_text()? {
        "refill" => Ok(LimitKind::Refill),
        "gcra" => Ok(LimitKind::Gcra),
        "rolling" => Ok(LimitKind::Rolling),
        "lifetime" => Ok(LimitKind::Lifetime),
        "budget" => Ok(LimitKind::Budget),
        "in_flight" => Ok(LimitKind::InFlight),
        other => Err(Error::invalid(
            "",
            format_args!("\"{other}\" is none of refill, gcra, rolling, lifetime, budget, in_flight"),
        )),
    }
}

fn outage(value: &Value) -> Result<Outage> {
    match value.as_text()? {
        "closed" => Ok(Outage::Closed),
        "open" => Ok(Outage::Open),
        other => Err(Error::invalid("", format_args!("\"{other}\" is neither closed nor open"))),
    }
}
