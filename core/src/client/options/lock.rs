//! How locks are named and held, as options of all languages.

use rustc_hash::FxHashMap;

use super::{Keepalive, Unit, keepalive, priority, rest, set, set_time, steal, ttl};
use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::slots::MAX_PER_REQUEST;
use crate::value::{Options, Value};
use crate::{Micros, SECOND};

/// The longest time to live of a lock where the handle does not say: what keeps a lock longer is that it is renewed.
pub const LOCK_TTL: Micros = 60 * SECOND;

/// How a lock is held; times are in microseconds. The defaults are those of a lock that lasts as long as its holder does.
///
/// | option | default | |
/// |---|---|---|
/// | `ttl` | the handle's `lock_ttl`: 60 s | time to live without a renewal, and the longest there is |
/// | `keepalive` | at a third of `ttl` | or so often, or not; `ttl`, less 1 % and 2 ms, must be longer than the interval and `response_timeout` together |
/// | `max_hold` | 0 | how long renewals may prolong it in all, at most a year; 0: for as long as it is renewed |
/// | `timeout` | 5 s | how long an acquisition waits; 0 for one attempt |
/// | `priority` | 0 | of those who wait, the higher go before the lower: -32,767 to 32,767; the handle's `lock_ageing` lifts who waits long |
/// | `steal` | no | whether holders of lower priority are told to yield while it waits |
/// | `stolen_consistency_factor` | 1 | the part of `ttl` for which they are waited for; below 1 the fence must be checked |
/// | `reentrant` | no | whether who acquires it again through the same lock joins what is held |
#[derive(Clone, Debug, PartialEq)]
pub struct LockOptions {
    /// Time to live without a renewal: 1 ms to the handle's `lock_ttl`, which is the default.
    pub ttl: Micros,
    /// Whether the lock is renewed while it is held: yes, at a third of its time to live.
    pub keepalive: Keepalive,
    /// How long renewals may prolong the lock in all, up to a year: 0 by default, for no bound. Then a body that never ends keeps
    /// it for as long as its process lives and reaches the store, as renewals need nothing of the body: until somebody ends it by
    /// [`Lock::break_lease`](super::Lock::break_lease).
    pub max_hold: Micros,
    /// How long an acquisition waits: 5 s by default, 0 for one attempt.
    pub timeout: Micros,
    /// Of those who wait, the higher ones go before the lower, and equal ones in the order in which they came, in whatever
    /// process they are: 0 by default, in the middle of -32,767 to 32,767. With the handle's `lock_ageing` who waits long goes
    /// before them.
    pub priority: i16,
    /// Whether holders of lower priority are told to yield while it waits, and the stolen consistency factor, from 0 to
    /// 1: the part of the handle's `lock_ttl` for which they are waited for. With 1 (safe) the lock is had when they
    /// yield, or when their leases end, which are not renewed meanwhile. With less, and it is less yet where they were
    /// seen to yield sooner, two may think that they hold it, and only a resource that checks the fence tells them apart.
    pub steal: Option<f64>,
    /// Whether who acquires it while it is held through the same `Lock` shares in that, as it is held, and at once: no by
    /// default. The last who gives it back frees it. One that was lost is not joined, nor one that did not ask to be.
    pub reentrant: bool,
}

impl Default for LockOptions {
    fn default() -> Self {
        LockOptions {
            ttl: LOCK_TTL,
            keepalive: Keepalive::Third,
            max_hold: 0,
            timeout: 5 * SECOND,
            priority: 0,
            steal: None,
            reentrant: false,
        }
    }
}

impl LockOptions {
    /// Reads options over `self`, the defaults.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(self, value: &Value, unit: Unit) -> Result<Self> {
        self.take(Options::of_call(value)?, unit)
    }

    /// Reads the options of a run over `self`, and whether its body runs under the lock: not if `if` is false or `unless`
    /// is true.
    pub(in crate::client) fn read_run(self, value: &Value, unit: Unit) -> Result<(Self, bool)> {
        let mut options = Options::of_call(value)?;
        // A word that Python has for itself.
        let condition = if unit == Unit::Seconds { "if_" } else { "if" };
        let wanted = options.take(condition, Value::as_bool)?.unwrap_or(true);
        let unwanted = options.take("unless", Value::as_bool)?.unwrap_or(false);
        Ok((self.take(options, unit)?, wanted && !unwanted))
    }

    fn take(mut self, mut options: Options<'_>, unit: Unit) -> Result<Self> {
        set_time(&mut self.ttl, &mut options, "ttl", unit, ttl)?;
        set(&mut self.keepalive, options.take("keepalive", |value| keepalive(value, unit))?);
        set_time(&mut self.max_hold, &mut options, "max_hold", unit, rest)?;
        set_time(&mut self.timeout, &mut options, "timeout", unit, rest)?;
        set(&mut self.priority, options.take("priority", priority)?);
        let steals = steal(&mut options, self.steal)?;
        set(&mut self.steal, steals);
        set(&mut self.reentrant, options.take("reentrant", Value::as_bool)?);
        options.end()?;
        Ok(self)
    }
}

/// Reads the names of a lock: one text, or a list without duplicates, at most so many as one request may name.
///
/// # Errors
/// `invalid_argument` naming `names`, or the one that is wrong.
pub(in crate::client) fn lock_names(value: &Value) -> Result<Vec<SlotId>> {
    let names = match value {
        Value::Text(_) => return name(value).map(|name| vec![name]).map_err(|error| error.within("names")),
        Value::List(names) => names,
        other => {
            let message = format_args!("must be text or a list of texts, not {}", other.kind());
            return Err(Error::invalid("names", message));
        }
    };
    if names.is_empty() || names.len() > MAX_PER_REQUEST {
        let message = format_args!("{} names; 1 to {MAX_PER_REQUEST} are allowed", names.len());
        return Err(Error::invalid("names", message));
    }
    let mut distinct = FxHashMap::<SlotId, u32>::default();
    let read = |(value, at): (&Value, u32)| {
        let field = format!("names[{at}]");
        let name = name(value).map_err(|error| error.within(&field))?;
        if distinct.insert(name.clone(), at).is_some() {
            return Err(Error::invalid(field, format_args!("\"{name}\" is there twice")));
        }
        Ok(name)
    };
    names.iter().zip(0..).map(read).collect()
}

fn name(value: &Value) -> Result<SlotId> {
    SlotId::name(value.as_text()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: &[&str]) -> Value {
        Value::List(ids.iter().map(|&id| id.into()).collect())
    }

    #[test]
    fn locks_are_named_by_one_text_or_a_list() {
        let names =
            |value: &Value| lock_names(value).map(|names| names.iter().map(SlotId::to_string).collect());
        assert_eq!(names(&"account:13".into()), Ok(vec!["account:13".to_owned()]));
        // Spelled otherwise they are others.
        assert_eq!(names(&list(&["0xAB", "0xab"])), Ok(vec!["0xAB".to_owned(), "0xab".to_owned()]));
        let many = |count| Value::List((0..count).map(|at| Value::Text(at.to_string())).collect());
        assert_eq!(lock_names(&many(MAX_PER_REQUEST)).unwrap().len(), MAX_PER_REQUEST);
        for (value, field) in [
            (Value::Null, "names"),
            (Value::Number(1.0), "names"),
            ("".into(), "names"),
            ("a b".into(), "names"),
            (list(&[]), "names"),
            (many(MAX_PER_REQUEST + 1), "names"),
            (list(&["a", "b", "a"]), "names[2]"),
            (list(&["a", "{"]), "names[1]"),
            (Value::List(vec![Value::Null]), "names[0]"),
        ] {
            let error = lock_names(&value).unwrap_err();
            assert_eq!(error.field(), Some(field), "{error}");
        }
    }

    #[test]
    fn a_lock_knows_its_options_and_no_others() {
        let read = |key: &str, value| LockOptions::default().read(&Value::map([(key, value)]), Unit::Seconds);
        let options = read("timeout", Value::Number(0.0)).unwrap();
        assert_eq!(options, LockOptions { timeout: 0, ..LockOptions::default() });
        assert!(read("reentrant", Value::Bool(true)).unwrap().reentrant);
        assert_eq!(read("max_hold", Value::Number(0.5)).unwrap().max_hold, SECOND / 2);
        assert_eq!(read("keepalive", Value::Bool(false)).unwrap().keepalive, Keepalive::Off);
        for (key, value) in [
            ("ttl", Value::Number(0.0)),
            ("timeout", Value::Number(-1.0)),
            ("max_hold", Value::Number(366.0 * 86_400.0)),
            ("keepalive", Value::Text("often".into())),
            ("reentrant", Value::Number(1.0)),
            ("slots", list(&["a"])),
            ("if_", Value::Bool(true)),
        ] {
            assert_eq!(read(key, value).unwrap_err().field(), Some(key));
        }
    }
}
