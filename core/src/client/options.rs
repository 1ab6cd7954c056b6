//! Options of pools, acquisitions and releases: read from values, checked against their ranges, once for
//! all languages.

use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::slots::{MAX_PER_REQUEST, MAX_REST, SlotSpec, Strategy};
use crate::value::{Options, Value};
use crate::{MILLISECOND, Micros, SECOND};

mod duration;
mod lock;
#[cfg(all(test, feature = "limits", feature = "tokens"))]
mod nonsense;
mod slot_lists;

pub(crate) use duration::rest;
pub use duration::{Unit, read_ttl, read_wait};
pub(super) use duration::{check_rest, check_ttl, duration, set_time, time, ttl};
pub(super) use lock::lock_names;
pub use lock::{LOCK_TTL, LockOptions};
use slot_lists::check_ids;
pub use slot_lists::read_slots;
pub(super) use slot_lists::{id_list, slot_ids, slot_specs, weighted_list};

/// Whether and how often leases are renewed while they are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keepalive {
    /// Not at all: the holder renews them.
    #[default]
    Off,
    /// At a third of their time to live.
    Third,
    /// So often: 1 ms to a year.
    Every(Micros),
}

impl Keepalive {
    /// Whether the interval is one, as with [`PoolOptions::check`].
    ///
    /// # Errors
    /// `invalid_argument` naming `keepalive`.
    pub(super) fn check(self) -> Result<()> {
        match self {
            Keepalive::Every(interval) if cfg!(not(target_family = "wasm")) => {
                check_keepalive(interval).map(drop).map_err(|error| error.within("keepalive"))
            }
            _ => Ok(()),
        }
    }

    /// The interval for a lease of this time to live; 0 for none.
    pub(super) fn interval(self, ttl: Micros) -> Micros {
        match self {
            Keepalive::Off => 0,
            Keepalive::Third => (ttl / 3).max(1),
            Keepalive::Every(interval) => interval,
        }
    }
}

/// What a pool is. Its times are in microseconds, those of the words of [`Leasehold::pool`](crate::client::Leasehold::pool) are
/// [`Duration`](std::time::Duration)s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// The slots of this process, or `None` to take whatever the pool has. Slots that the pool does not
    /// have yet are added; those of other processes are left alone and never handed to this one.
    pub slots: Option<Vec<(String, SlotSpec)>>,
    /// Time to live of a lease: 1 ms to 7 days, 30 s by default. The same in every process that shares the
    /// pool: it is how long a store that lost its memory grants nothing.
    pub ttl: Micros,
    /// How long a slot rests after a lease that is given back, or dropped: 0 (the default) to a year. After one that ends at its
    /// deadline, or is broken, it rests not.
    pub cooldown: Micros,
    /// How to choose among the slots that are ready: at random by default.
    pub strategy: Strategy,
    /// How long renewals may prolong a lease in all, and the most that it lasts: by default 10 minutes, or `ttl` if that is
    /// longer; 0 for no bound.
    pub max_hold: Option<Micros>,
    /// Whether leases are renewed while they are held: off by default. Needs a `ttl` that is longer than the interval
    /// and the handle's `response_timeout` together.
    pub keepalive: Keepalive,
    /// How long a slot whose nonce is in doubt rests before it is handed out again: 0 by default. Make it as
    /// long as a transaction may be under way to a node, and a node may lag behind, after its sender died:
    /// only then is what the chain names the last word. The longest of all processes counts.
    pub doubt_rest: Micros,
    /// How long the record outweighs a chain that names a lower nonce: a minute by default. The same in every process that shares the
    /// pool: the shortest counts.
    pub settle: Micros,
    /// How long an acquisition waits, where it does not say: 10 s by default.
    pub timeout: Micros,
    /// The time of waiting that outweighs one step of priority: 0 (the default) if none does, up to a year. The same in
    /// every process that shares the pool.
    pub ageing: Micros,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            slots: None,
            ttl: 30 * SECOND,
            cooldown: 0,
            strategy: Strategy::Random,
            max_hold: None,
            keepalive: Keepalive::Off,
            doubt_rest: 0,
            settle: 60 * SECOND,
            timeout: 10 * SECOND,
            ageing: 0,
        }
    }
}

impl PoolOptions {
    /// The defaults, with these slots.
    ///
    /// # Errors
    /// `invalid_argument` if there are none, one is there twice, or is not an id.
    pub fn slots<I: AsRef<str>>(ids: impl IntoIterator<Item = I>) -> Result<Self> {
        let slots = slot_specs(&id_list(ids)).map_err(|error| error.within("slots"))?;
        Ok(PoolOptions { slots: Some(slots), ..PoolOptions::default() })
    }

    /// Whether all of its times are in their ranges: a program in Rust fills them in by itself. In a wasm module they have
    /// been read from values, and checked then.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    pub(super) fn check(&self) -> Result<()> {
        if cfg!(target_family = "wasm") {
            return Ok(());
        }
        check_ttl(self.ttl).map_err(|error| error.within("ttl"))?;
        for (field, time) in [
            ("cooldown", self.cooldown),
            ("max_hold", self.max_hold()),
            ("doubt_rest", self.doubt_rest),
            ("settle", self.settle),
            ("timeout", self.timeout),
            ("ageing", self.ageing),
        ] {
            check_rest(field, time)?;
        }
        Ok(())
    }

    /// How long renewals may prolong a lease in all; 0 for no bound.
    pub(super) fn max_hold(&self) -> Micros {
        self.max_hold.unwrap_or(self.ttl.max(600 * SECOND))
    }

    /// Reads options over `self`, the defaults.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(mut self, value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        if let Some(slots) = options.take("slots", slot_specs)? {
            self.slots = Some(slots);
        }
        set_time(&mut self.ttl, &mut options, "ttl", unit, ttl)?;
        set_time(&mut self.cooldown, &mut options, "cooldown", unit, rest)?;
        set(&mut self.strategy, options.take("strategy", strategy)?);
        self.max_hold = time(&mut options, "max_hold", unit, rest)?;
        set(&mut self.keepalive, options.take("keepalive", |value| keepalive(value, unit))?);
        set_time(&mut self.doubt_rest, &mut options, "doubt_rest", unit, rest)?;
        set_time(&mut self.settle, &mut options, "settle", unit, rest)?;
        set_time(&mut self.timeout, &mut options, "timeout", unit, rest)?;
        set_time(&mut self.ageing, &mut options, "ageing", unit, rest)?;
        options.besides("read_nonce");
        options.end()?;
        Ok(self)
    }
}

/// What one acquisition wants, where it differs from the pool's options. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcquireOptions {
    /// How long to wait, up to a year; 0 for one attempt.
    pub timeout: Option<Micros>,
    /// Time to live of the lease: 1 ms to that of the pool.
    pub ttl: Option<Micros>,
    /// Whether the lease is renewed while it is held.
    pub keepalive: Option<Keepalive>,
    /// How many slots, all or none: 1 by default, at most 1,000.
    pub count: Option<u32>,
    /// Only one of these slots (or `count` of them) will do: those that are ready, in this order, and those in doubt last.
    pub slots: Option<Vec<SlotId>>,
    /// How to choose among the slots that are ready; not together with `slots`.
    pub strategy: Option<Strategy>,
    /// Of those who wait, the higher ones go before the lower, and equal ones in the order in which they came: 0 by
    /// default, in the middle of -32,767 to 32,767.
    pub priority: Option<i16>,
    /// Whether holders of lower priority are told to yield while it waits, and the stolen consistency factor, from 0 to
    /// 1: the part of the pool's time to live for which they are waited for, where 1 is to the end of their leases, and
    /// anything below relies on the fence being checked. Without effect for one attempt, which does not wait.
    pub steal: Option<f64>,
    /// For locks, whose pool has none: 0 is that of the pool.
    #[doc(hidden)]
    pub max_hold: Micros,
}

impl AcquireOptions {
    /// Reads options.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        let read = AcquireOptions {
            timeout: time(&mut options, "timeout", unit, rest)?,
            ttl: time(&mut options, "ttl", unit, ttl)?,
            keepalive: options.take("keepalive", |value| keepalive(value, unit))?,
            count: options.take("count", count)?,
            slots: options.take("slots", slot_ids)?,
            strategy: options.take("strategy", strategy)?,
            priority: options.take("priority", priority)?,
            steal: steal(&mut options, None)?.flatten(),
            max_hold: 0,
        };
        options.end()?;
        read.check_slots()?;
        Ok(read)
    }

    /// Whether what is wanted can be had at all, as with [`PoolOptions::check`].
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    pub(super) fn check(&self) -> Result<()> {
        if cfg!(target_family = "wasm") {
            return Ok(());
        }
        if let Some(count) = self.count {
            check_count(u64::from(count)).map_err(|error| error.within("count"))?;
        }
        // Those that a language names were looked at as they were read.
        if let Some(slots) = &self.slots {
            check_ids(slots).map_err(|error| error.within("slots"))?;
        }
        self.check_slots()
    }

    // Here and below: a wasm module, which is judged by its size, has one use of it.
    #[inline(always)]
    fn check_slots(&self) -> Result<()> {
        match (self.count, &self.slots) {
            (Some(count), Some(slots)) if count as usize > slots.len() => {
                let message = format_args!("{count} of {} slots cannot be had", slots.len());
                Err(Error::invalid("count", message))
            }
            _ => Ok(()),
        }
    }
}

/// How a lease is given back. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseOptions {
    /// How long the slot rests, where it differs from the pool's option: 0 to a year.
    pub cooldown: Option<Micros>,
}

impl ReleaseOptions {
    /// Reads options.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        let read = ReleaseOptions { cooldown: time(&mut options, "cooldown", unit, rest)? };
        options.end()?;
        Ok(read)
    }
}

/// Reads the options of a resync: whether the chain is believed that names a lower nonce.
///
/// # Errors
/// `invalid_argument` naming the option.
#[doc(hidden)]
pub fn read_rewind(value: &Value) -> Result<bool> {
    let mut options = Options::of_call(value)?;
    let rewind = options.take("rewind", Value::as_bool)?;
    options.end()?;
    Ok(rewind.unwrap_or(false))
}

pub(super) fn keepalive(value: &Value, unit: Unit) -> Result<Keepalive> {
    match value {
        Value::Bool(false) => Ok(Keepalive::Off),
        Value::Bool(true) => Ok(Keepalive::Third),
        value => check_keepalive(duration(value, unit)?),
    }
}

#[inline(always)]
fn check_keepalive(interval: Micros) -> Result<Keepalive> {
    match interval {
        MILLISECOND..=MAX_REST => Ok(Keepalive::Every(interval)),
        _ => Err(Error::invalid("", "is out of range; true, false, or an interval of 1 ms or more")),
    }
}

fn count(value: &Value) -> Result<u32> {
    check_count(value.as_u64_of(format_args!("1 to {MAX_PER_REQUEST}"))?)
}

#[inline(always)]
fn check_count(count: u64) -> Result<u32> {
    match count {
        count @ 1.. if count <= MAX_PER_REQUEST as u64 => Ok(count as u32),
        count => Err(Error::invalid(
            "",
            format_args!("{count} is out of range; 1 to {MAX_PER_REQUEST} are allowed"),
        )),
    }
}

pub(super) fn priority(value: &Value) -> Result<i16> {
    match value.as_number()? {
        priority if priority.fract() == 0.0 && priority.abs() <= f64::from(i16::MAX) => Ok(priority as i16),
        _ => Err(Error::invalid("", "must be a whole number from -32,767 to 32,767")),
    }
}

/// Whether to steal, and by what factor, over what was said `before`; nothing if that is not said.
fn steal(options: &mut Options<'_>, before: Option<f64>) -> Result<Option<Option<f64>>> {
    let wanted = options.take("steal", Value::as_bool)?;
    let factor = options.take("stolen_consistency_factor", Value::as_number)?;
    check_factor(factor)?;
    match (wanted, factor) {
        (Some(true), factor) => Ok(Some(Some(factor.or(before).unwrap_or(1.0)))),
        (None, Some(factor)) if before.is_some() => Ok(Some(Some(factor))),
        (_, Some(_)) => Err(Error::invalid("stolen_consistency_factor", "is for those who steal")),
        (wanted, None) => Ok(wanted.map(|_| None)),
    }
}

/// Whether it is a stolen consistency factor.
///
/// # Errors
/// `invalid_argument` naming it.
pub(super) fn check_factor(factor: Option<f64>) -> Result<()> {
    match factor {
        // Written so that NaN is refused.
        Some(factor) if !(0.0..=1.0).contains(&factor) => Err(Error::invalid(
            "stolen_consistency_factor",
            "is out of range; 0 to 1 is allowed, where 1 is safe",
        )),
        _ => Ok(()),
    }
}

fn strategy(value: &Value) -> Result<Strategy> {
    match value.as_text()? {
        "random" => Ok(Strategy::Random),
        "least_recent" => Ok(Strategy::LeastRecent),
        "weighted" => Ok(Strategy::Weighted),
        other => {
            Err(Error::invalid("", format_args!("\"{other}\" is none of random, least_recent, weighted")))
        }
    }
}

pub(super) fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: Value) -> Result<PoolOptions> {
        PoolOptions::default().read(&value, Unit::Milliseconds)
    }

    fn list(ids: &[&str]) -> Value {
        Value::List(ids.iter().map(|&id| id.into()).collect())
    }

    #[test]
    fn wrong_options_are_refused_by_name() {
        for (key, value, field) in [
            ("slots", list(&[]), "slots"),
            ("slots", list(&["a", "a"]), "slots[1]"),
            ("slots", list(&["0xAB", "0xab"]), "slots[1]"),
            ("slots", list(&["0xab", "0x00ab"]), "slots[1]"),
            ("slots", list(&["a", "b:c"]), "slots[1]"),
            ("slots", Value::List(vec![Value::Number(1.0)]), "slots[0]"),
            (
                "slots",
                Value::List(vec![Value::map([("id", "a".into()), ("weight", Value::Number(0.0))])]),
                "slots[0].weight",
            ),
            ("slots", Value::Text("a".into()), "slots"),
            ("ttl", Value::Number(-1.0), "ttl"),
            ("ttl", Value::Number(0.0), "ttl"),
            ("ttl", Value::Number(f64::NAN), "ttl"),
            ("ttl", Value::Number(f64::INFINITY), "ttl"),
            ("ttl", Value::Integer(1 << 64), "ttl"),
            ("ttl", Value::Text("30".into()), "ttl"),
            ("cooldown", Value::Number(-0.1), "cooldown"),
            ("keepalive", Value::Number(0.1), "keepalive"),
            ("keepalive", Value::Text("yes".into()), "keepalive"),
            ("strategy", Value::Text("best".into()), "strategy"),
            ("tll", Value::Number(1.0), "tll"),
        ] {
            let error = ms(Value::map([(key, value.clone())])).unwrap_err();
            assert_eq!(error.field(), Some(field), "{key} {value:?}: {error}");
        }
    }

    #[test]
    fn messages_name_the_range_that_is_meant() {
        let weight = Value::List(vec![Value::map([("id", "a".into()), ("weight", Value::Number(-1.0))])]);
        for (key, value, range) in [
            ("ttl", Value::Number(-1.0), "1 ms to 7 days"),
            ("ttl", Value::Number(1e300), "1 ms to 7 days"),
            ("keepalive", Value::Number(-1.0), "an interval of 1 ms or more"),
            ("cooldown", Value::Number(-1.0), "0 to 365 days"),
            ("slots", weight, "1 to 255"),
        ] {
            let error = ms(Value::map([(key, value)])).unwrap_err();
            assert!(error.message().contains(range), "{error}");
        }
        let count = Value::map([("count", Value::Number(-1.0))]);
        let error = AcquireOptions::read(&count, Unit::Seconds).unwrap_err();
        assert_eq!(error.message(), "count: -1 is not a whole number from 1 to 1000");
    }

    // Leases of an hour ended after ten minutes, though renewals were said to end there.
    #[test]
    fn a_lease_is_not_shorter_than_its_time_to_live_unless_that_is_said() {
        let hour = || ("ttl", Value::Number(3_600_000.0));
        assert_eq!(ms(Value::map([hour()])).unwrap().max_hold(), 3_600 * SECOND);
        assert_eq!(ms(Value::map([])).unwrap().max_hold(), 600 * SECOND);
        for said in [0, 5] {
            let options =
                ms(Value::map([hour(), ("max_hold", Value::Number(f64::from(said) * 1e3))])).unwrap();
            assert_eq!(options.max_hold(), u64::from(said as u32) * SECOND);
        }
    }

    #[test]
    fn durations_come_in_the_unit_of_the_language() {
        let value = Value::map([("ttl", Value::Number(1.5))]);
        assert_eq!(ms(value.clone()).unwrap().ttl, 1_500);
        assert_eq!(PoolOptions::default().read(&value, Unit::Seconds).unwrap().ttl, 1_500_000);
    }
}
