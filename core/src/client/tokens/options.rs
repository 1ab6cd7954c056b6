//! How tokens are selected and held, as options of all languages.

use std::sync::Arc;

use crate::client::options::{check_rest, check_ttl, keepalive, rest, set, set_time, time, ttl};
use crate::client::{Keepalive, Unit};
use crate::error::{Error, Result};
use crate::tokens::{Bounds, FirstFitRandom, Spender, Strategy, named};
use crate::value::{Options, Value};
use crate::{Micros, SECOND};

/// How a wallet's tokens are selected; times are in microseconds. The same in every process that selects from the wallet.
///
/// | option | default | |
/// |---|---|---|
/// | `currency` | the empty text | which is selected where a selection does not say |
/// | `ttl` | 60 s | time to live of a selection without a renewal |
/// | `keepalive` | at a third of `ttl` | or so often, or not |
/// | `settle` | 60 s | how long tokens stay locked after they were spent: `max_age`, and besides as long as the source may be late to hear of it |
/// | `max_age` | 30 s | how long after a source listed it a token is offered; 1 s at least |
/// | `timeout` | 5 s | how long a selection waits for what others have; 0 for one attempt, and a minute of pages at most |
/// | `strategy` | `first_fit_random` | how tokens are chosen |
/// | `max_inputs` | 1,000 | the most tokens of a selection; 10,000 at most |
/// | `max_attempts` | 50,000 | the most tokens that a selection asks the store for before it begins anew |
/// | `max_rounds` | 10,000 | how often it gives up what it has, pauses and begins anew; not where it is called because something came free |
/// | `page` | 10,000 | how many tokens the source is asked for at a time: the more a process knows, the less it meets others |
/// | `verify` | no | whether the source is asked of every token that was had whether it is unspent |
#[derive(Clone, Debug)]
pub struct TokensOptions {
    /// Which currency is selected where a selection does not say: the empty text by default.
    pub currency: Arc<str>,
    /// Time to live of a selection without a renewal: 1 ms to 7 days, 60 s by default.
    pub ttl: Micros,
    /// Whether selections are renewed while they are held: yes, at a third of their time to live.
    pub keepalive: Keepalive,
    /// How long tokens stay locked after they were spent: until then every process has noticed that.
    pub settle: Micros,
    /// How long after a source listed it a token is offered, unless the source tells of changes.
    pub max_age: Micros,
    /// How long a selection waits for what others have; 0 for one attempt.
    pub timeout: Micros,
    /// How tokens are chosen.
    pub strategy: Arc<dyn Strategy>,
    /// What a selection may use up, and whether it verifies what it has.
    pub bounds: Bounds,
    /// How many tokens the source is asked for at a time.
    pub page: usize,
}

impl Default for TokensOptions {
    fn default() -> Self {
        TokensOptions {
            currency: Arc::default(),
            ttl: 60 * SECOND,
            keepalive: Keepalive::Third,
            settle: 60 * SECOND,
            max_age: 30 * SECOND,
            timeout: 5 * SECOND,
            strategy: Arc::new(FirstFitRandom),
            bounds: Bounds::default(),
            page: 10_000,
        }
    }
}

impl TokensOptions {
    /// Reads options over `self`, the defaults.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(mut self, value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        set(&mut self.currency, options.take("currency", text)?);
        set_time(&mut self.ttl, &mut options, "ttl", unit, ttl)?;
        set(&mut self.keepalive, options.take("keepalive", |value| keepalive(value, unit))?);
        set_time(&mut self.settle, &mut options, "settle", unit, ttl)?;
        set_time(&mut self.max_age, &mut options, "max_age", unit, rest)?;
        set_time(&mut self.timeout, &mut options, "timeout", unit, rest)?;
        set(&mut self.strategy, options.take("strategy", |value| named(value.as_text()?))?);
        set(&mut self.bounds.inputs, options.take("max_inputs", inputs)?);
        set(&mut self.bounds.attempts, options.take("max_attempts", count)?);
        set(&mut self.bounds.rounds, options.take("max_rounds", count)?.map(|count| count as u32));
        set(&mut self.page, options.take("page", count)?);
        set(&mut self.bounds.verify, options.take("verify", Value::as_bool)?);
        options.besides("source");
        options.end()?;
        self.check()?;
        Ok(self)
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.max_age < SECOND {
            return Err(Error::invalid("max_age", "is too short; 1 s or more are allowed"));
        }
        if self.settle < self.max_age {
            return Err(Error::invalid(
                "settle",
                "is shorter than max_age: so long a process may offer what was listed, and the source may be late besides",
            ));
        }
        for (field, time) in [("ttl", self.ttl), ("settle", self.settle)] {
            check_ttl(time).map_err(|error| error.within(field))?;
        }
        check_rest("timeout", self.timeout)?;
        check_inputs(self.bounds.inputs as u64).map_err(|error| error.within("max_inputs"))?;
        for (field, count) in [
            ("max_attempts", self.bounds.attempts as u64),
            ("max_rounds", u64::from(self.bounds.rounds)),
            ("page", self.page as u64),
        ] {
            check_count(count).map_err(|error| error.within(field))?;
        }
        Ok(())
    }
}

/// What one selection wants, where it differs from the wallet's options; times are in microseconds.
#[derive(Clone, Debug, Default)]
pub struct SelectOptions {
    /// Of which currency: the wallet's option by default.
    pub currency: Option<Arc<str>>,
    /// Who spends, as listings show it; by default nobody else's name, new for each selection. Whoever selects again
    /// under a name is not refused what that name holds by another handle of the wallet, as by another process, and takes it from that,
    /// which is told that it lost it; within one handle it is kept until that selection ends. It chooses anew: it may get other tokens.
    pub spender: Option<Spender>,
    /// Time to live of the selection without a renewal: the wallet's by default, and at most that.
    pub ttl: Option<Micros>,
    /// Whether the selection is renewed while it is held.
    pub keepalive: Option<Keepalive>,
    /// How long to wait for what others have; 0 for one attempt.
    pub timeout: Option<Micros>,
    /// How tokens are chosen.
    pub strategy: Option<Arc<dyn Strategy>>,
    /// The most tokens: 1 to 10,000.
    pub max_inputs: Option<usize>,
}

impl SelectOptions {
    /// Reads options.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        let read = SelectOptions {
            currency: options.take("currency", text)?,
            spender: options.take("spender", Spender::read)?,
            ttl: time(&mut options, "ttl", unit, ttl)?,
            keepalive: options.take("keepalive", |value| keepalive(value, unit))?,
            timeout: time(&mut options, "timeout", unit, rest)?,
            strategy: options.take("strategy", |value| named(value.as_text()?))?,
            max_inputs: options.take("max_inputs", inputs)?,
        };
        options.end()?;
        Ok(read)
    }
}

fn text(value: &Value) -> Result<Arc<str>> {
    value.as_text().map(Arc::from)
}

fn count(value: &Value) -> Result<usize> {
    check_count(value.as_u64()?)
}

fn inputs(value: &Value) -> Result<usize> {
    check_inputs(value.as_u64()?)
}

/// A count, if it is in its range.
fn check_count(count: u64) -> Result<usize> {
    match count {
        1..=1_000_000 => Ok(count as usize),
        _ => Err(Error::invalid("", "is out of range; 1 to 1,000,000 are allowed")),
    }
}

/// The same of the most tokens of a selection, all of which are given back, or spent, together: the courier has room for several
/// such selections.
pub(super) fn check_inputs(count: u64) -> Result<usize> {
    match count {
        1..=10_000 => Ok(count as usize),
        _ => Err(Error::invalid("", "is out of range; 1 to 10,000 are allowed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_read_and_no_other() {
        let read = |key: &str, value: Value| {
            TokensOptions::default().read(&Value::map([(key, value)]), Unit::Seconds)
        };
        assert_eq!(read("ttl", Value::Number(5.0)).unwrap().ttl, 5 * SECOND);
        assert_eq!(&*read("currency", "EUR".into()).unwrap().currency, "EUR");
        assert!(read("verify", Value::Bool(true)).unwrap().bounds.verify);
        assert_eq!(format!("{:?}", read("strategy", "best_fit".into()).unwrap().strategy), "BestFit");
        for (key, value) in [
            ("ttl", Value::Number(0.0)),
            ("settle", Value::Number(29.0)),
            ("max_age", Value::Number(0.5)),
            ("timeout", Value::Number(-1.0)),
            ("strategy", "greedy".into()),
            ("max_inputs", Value::Number(0.0)),
            ("page", Value::Number(1.5)),
            ("source", Value::Null),
        ] {
            assert_eq!(read(key, value).unwrap_err().field(), Some(key));
        }
        let read = |key: &str, value: Value| SelectOptions::read(&Value::map([(key, value)]), Unit::Seconds);
        assert_eq!(read("currency", "EUR".into()).unwrap().currency.as_deref(), Some("EUR"));
        assert_eq!(read("ttl", Value::Number(5.0)).unwrap().ttl, Some(5 * SECOND));
        assert_eq!(read("keepalive", Value::Bool(false)).unwrap().keepalive, Some(Keepalive::Off));
        assert_eq!(read("spender", "tx1".into()).unwrap().spender, Some(Spender::new("tx1")));
        for (key, value) in [
            ("currency", Value::Number(1.0)),
            ("spender", Value::Number(1.0)),
            ("ttl", Value::Number(0.0)),
            ("keepalive", "often".into()),
            ("max_inputs", Value::Number(1_000_001.0)),
            ("settle", Value::Null),
        ] {
            assert_eq!(read(key, value).unwrap_err().field(), Some(key));
        }
    }

    // Of more than wait for the store at a time some were never told to be spent, and said again that is no more either.
    #[test]
    fn a_selection_has_no_more_tokens_than_are_given_back_or_spent_together() {
        for (count, fits) in [(10_000, true), (10_001, false), (100_000, false)] {
            let options = Value::map([("max_inputs", Value::Number(f64::from(count)))]);
            let of_all = TokensOptions::default().read(&options, Unit::Seconds).map(drop);
            let of_one = SelectOptions::read(&options, Unit::Seconds).map(drop);
            for read in [of_all, of_one] {
                let field = read.err().map(|error| error.field().map(str::to_owned));
                assert_eq!(field, (!fits).then(|| Some("max_inputs".to_owned())), "{count}");
            }
        }
    }
}
