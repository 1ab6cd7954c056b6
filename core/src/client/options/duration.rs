//! Durations, in the unit of a language.

use super::set;
use crate::error::{Error, Result};
use crate::slots::{MAX_REST, TTL_RANGE};
use crate::value::{Options, Value};
use crate::{MILLISECOND, Micros, SECOND};

/// The unit in which a language gives durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// JavaScript.
    Milliseconds,
    /// Python.
    Seconds,
}

impl Unit {
    /// How many microseconds it is.
    pub(crate) fn micros(self) -> f64 {
        match self {
            Unit::Milliseconds => MILLISECOND as f64,
            Unit::Seconds => SECOND as f64,
        }
    }

    /// So much time in this unit; what is for ever is infinite.
    pub fn count(self, time: Micros) -> f64 {
        if time == Micros::MAX { f64::INFINITY } else { time as f64 / self.micros() }
    }
}

/// Reads the time to live that a renewal asks for; nothing for the pool's.
///
/// # Errors
/// `invalid_argument` naming `ttl`.
#[doc(hidden)]
pub fn read_ttl(value: &Value, unit: Unit) -> Result<Option<Micros>> {
    match value {
        Value::Null => Ok(None),
        value => ttl(value, unit).map(Some).map_err(|error| error.within("ttl")),
    }
}

/// Reads how long somebody waits at most; nothing for ever.
///
/// # Errors
/// `invalid_argument` naming `timeout`.
#[doc(hidden)]
pub fn read_wait(value: &Value, unit: Unit) -> Result<Option<Micros>> {
    match value {
        Value::Null => Ok(None),
        value => rest(value, unit).map(Some).map_err(|error| error.within("timeout")),
    }
}

/// Takes a duration that `read` knows the range of.
pub(in crate::client) fn time(
    options: &mut Options<'_>,
    key: &'static str,
    unit: Unit,
    read: fn(&Value, Unit) -> Result<Micros>,
) -> Result<Option<Micros>> {
    options.take(key, |value| read(value, unit))
}

/// Takes one into its place, which stays as it is where nothing is said.
pub(in crate::client) fn set_time(
    place: &mut Micros,
    options: &mut Options<'_>,
    key: &'static str,
    unit: Unit,
    read: fn(&Value, Unit) -> Result<Micros>,
) -> Result<()> {
    set(place, time(options, key, unit, read)?);
    Ok(())
}

/// A duration from 0 to a year.
///
/// # Errors
/// `invalid_argument` if it is negative, not finite, too long or not a number.
pub(crate) fn rest(value: &Value, unit: Unit) -> Result<Micros> {
    match duration(value, unit)? {
        Micros::MAX => Err(Error::invalid("", "is out of range; 0 to 365 days are allowed")),
        time => Ok(time),
    }
}

/// A duration, whose range who asks checks, and names: what is not from 0 to a year is the longest, which is in none.
pub(in crate::client) fn duration(value: &Value, unit: Unit) -> Result<Micros> {
    let micros = value.as_number()? * unit.micros();
    let good = (0.0..=MAX_REST as f64).contains(&micros);
    Ok(if good { micros.round() as Micros } else { Micros::MAX })
}

/// A time to live.
///
/// # Errors
/// `invalid_argument` if it is not one from 1 ms to 7 days.
pub(in crate::client) fn ttl(value: &Value, unit: Unit) -> Result<Micros> {
    check_ttl(duration(value, unit)?)
}

/// A time to live, if it is in its range.
///
/// # Errors
/// `invalid_argument` if it is not.
pub(in crate::client) fn check_ttl(time: Micros) -> Result<Micros> {
    if !TTL_RANGE.contains(&time) {
        return Err(Error::invalid("", "is out of range; 1 ms to 7 days are allowed"));
    }
    Ok(time)
}

/// Whether a time is one from 0 to a year: sums of longer ones could wrap around. In a wasm module it is, as with
/// [`PoolOptions::check`].
///
/// # Errors
/// `invalid_argument` naming it.
pub(in crate::client) fn check_rest(field: &'static str, time: Micros) -> Result<()> {
    if cfg!(not(target_family = "wasm")) && time > MAX_REST {
        return Err(Error::invalid(field, "is out of range; 0 to 365 days are allowed"));
    }
    Ok(())
}
