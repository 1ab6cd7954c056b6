//! How long a chain of thieves can get, and the time to live that outlasts it.
//!
//! Where a lock may be stolen by whoever has a higher priority, the thief asks its victim to stop: a *handshake*. A
//! victim that is itself still waiting for the answer of the one before it cannot answer, so thieves of ever higher
//! priority form a *chain*, and the last of them waits for all the handshakes before it. A time to live shorter than
//! that makes its wait vain.
//!
//! # The distribution
//!
//! Let contenders come in a random order. The k-th is the highest so far with probability 1/k, whatever happened
//! before. So the number of holders in a row is a sum of independent draws, N = Σ Bernoulli(1/k) for k from 1 to K,
//! where K is the smaller of the number of contenders and the number of priority levels. Its mean is the harmonic
//! number H(K), about ln K + 0.5772; P(N = n) is the Stirling number of the first kind c(K, n) over K!. Contenders of
//! equal priority cannot rob each other, which only makes chains shorter, and only those who come during a handshake
//! make them longer: the number is an upper bound.
//!
//! | levels | mean | 99 % | 99.9 % |
//! |-------:|-----:|-----:|-------:|
//! |      2 | 1.50 |    2 |      2 |
//! |      3 | 1.83 |    3 |      3 |
//! |     10 | 2.93 |    6 |      7 |
//! |    100 | 5.19 |   10 |     12 |
//! |  1,000 | 7.49 |   14 |     16 |
//!
//! # Where the priority lock's specification errs
//!
//! It asks the same question and prints C(N) = 1/P · 1/(P − 1) · … · 1/(P − N + 1) as the probability of a chain of N
//! among P levels, the mean E(P) = Σ i·C(i), and for 100 levels the value 0.010205. That is what the formula gives, but
//! no length: a chain has one holder at least. C is the chance of one *particular* sequence of priorities, and no sum is
//! taken over which ones it could be, so it is no distribution: over all lengths it comes to 0.0101 instead of 1. The mean
//! is H(100) = 5.19; the time to live that the text recommends, ten handshakes, follows from neither, and would cover
//! 99.83 % of the chains.
//!
//! # When to ask
//!
//! Not for leasehold's own locks, where thieves wait for the end of leases: a claimant that has not acted yet is replaced
//! in the line by a higher one, no chain forms, and a steal costs one handshake, however many priorities there are. How
//! long those take is measured (`handshake` of a lock, and of a pool's statistics), and `recommended_ttl` of either goes by
//! that. The chain's number is the right one for locks of other
//! systems, whose thieves wait one behind the other; and for thieves that may go on before their victim has answered (a
//! consistency factor below 1), because then each of them can be robbed while its own victim is still at work.

use crate::Micros;
use crate::client::{Unit, rest};
use crate::error::{Error, Result};
use crate::value::{Options, Value};

#[cfg(test)]
mod tests;

/// How many may contend for one lock.
pub const MAX_CONTENDERS: u64 = 1_000_000_000;
/// How many levels of priority there may be.
pub const MAX_LEVELS: u64 = 65_536;

/// Who contends for a lock, or for the slots of a pool, of which it is measured how long it takes to rob a holder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contention {
    /// How many contend at once: 1 to [`MAX_CONTENDERS`].
    pub contenders: u64,
    /// How many levels of priority they have: 1 to [`MAX_LEVELS`].
    pub levels: u64,
    /// The part of all chains that shall end in time: above 0 and below 1.
    pub confidence: f64,
}

impl Contention {
    /// Reads options, all of which are needed: `contenders`, `levels`, `confidence`.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        let read = Self::take(&mut options)?;
        options.end()?;
        Ok(read)
    }

    fn take(options: &mut Options<'_>) -> Result<Self> {
        Ok(Contention {
            contenders: needed(options, "contenders", Value::as_u64)?,
            levels: needed(options, "levels", Value::as_u64)?,
            confidence: needed(options, "confidence", Value::as_number)?,
        })
    }

    /// [`Handshakes::recommended_ttl`] by what was measured; nothing as long as no handshake was, which is 0 then.
    ///
    /// # Errors
    /// As it has them, also before anything was measured.
    pub(crate) fn recommended_ttl(self, handshake: Micros, round_trip: Micros) -> Result<Option<Micros>> {
        let Contention { contenders, levels, confidence } = self;
        let of_one = handshake.max(1);
        let ttl =
            Handshakes { contenders, levels, handshake: of_one, round_trip, confidence }.recommended_ttl()?;
        Ok((handshake > 0).then_some(ttl))
    }
}

/// Who contends for a lock, and how long it takes to rob its holder, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handshakes {
    /// How many contend for the lock at once: 1 to [`MAX_CONTENDERS`].
    pub contenders: u64,
    /// How many levels of priority they have: 1 to [`MAX_LEVELS`].
    pub levels: u64,
    /// How long one handshake takes, 1 µs or more: a high quantile of what was measured, and not the mean, because
    /// one that is slow holds up the whole chain.
    pub handshake: Micros,
    /// How long it takes to ask the store and have its answer.
    pub round_trip: Micros,
    /// The part of all chains that shall end in time: above 0 and below 1.
    pub confidence: f64,
}

impl Handshakes {
    /// Reads options, all of which are needed: `contenders`, `levels`, `handshake`, `round_trip`, `confidence`.
    /// Durations are up to a year.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        let Contention { contenders, levels, confidence } = Contention::take(&mut options)?;
        let handshake = needed(&mut options, "handshake", |value| rest(value, unit))?;
        let round_trip = needed(&mut options, "round_trip", |value| rest(value, unit))?;
        let read = Handshakes { contenders, levels, handshake, round_trip, confidence };
        options.end()?;
        Ok(read)
    }

    /// The time to live that outlasts the chain with the given confidence: a handshake for each holder but the first,
    /// and a round trip; in microseconds.
    ///
    /// # Errors
    /// `invalid_argument` naming the field that is out of its range, or that makes the time too long for 64 bits.
    pub fn recommended_ttl(&self) -> Result<Micros> {
        let &Handshakes { contenders, levels, handshake, round_trip, confidence } = self;
        if handshake == 0 {
            return Err(Error::invalid("handshake", "must take some time, 1 µs at least"));
        }
        let thieves = u64::from(chain_length(levels, contenders, confidence)?.saturating_sub(1));
        let too_long =
            |field| Error::invalid(field, "is too long: the time to live does not fit into 64 bits");
        let handshakes = handshake.checked_mul(thieves).ok_or_else(|| too_long("handshake"))?;
        handshakes.checked_add(round_trip).ok_or_else(|| too_long("round_trip"))
    }
}

/// [`Handshakes::recommended_ttl`] of options, in the unit of the language.
///
/// # Errors
/// As [`Handshakes::read`] and [`Handshakes::recommended_ttl`] have them.
#[doc(hidden)]
pub fn recommended_ttl(value: &Value, unit: Unit) -> Result<f64> {
    let ttl = Handshakes::read(value, unit)?.recommended_ttl()?;
    Ok(ttl as f64 / unit.micros())
}

/// How many hold the lock one after the other, the first included, in all but the rarest 1 - `confidence` of the cases:
/// the smallest n with P(N > n) ≤ 1 - `confidence`; 1 to 46.
///
/// The probabilities have a relative error below 3·10^-11, so n is exact unless one of them is that near
/// to 1 - `confidence`.
///
/// # Errors
/// `invalid_argument` naming `levels` (1 to [`MAX_LEVELS`]), `contenders` (1 to [`MAX_CONTENDERS`]) or `confidence`
/// (above 0 and below 1).
pub fn chain_length(levels: u64, contenders: u64, confidence: f64) -> Result<u32> {
    let depth = depth(levels, contenders)?;
    // Written so that NaN is refused.
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Error::invalid("confidence", "must be above 0 and below 1"));
    }
    Ok(Tails::new(depth).quantile(confidence))
}

/// How many hold the lock one after the other on average, the first included: the harmonic number of the smaller of the
/// two. Not to choose a time to live by: many chains are longer.
///
/// # Errors
/// `invalid_argument` naming `levels` or `contenders`, as [`chain_length`].
pub fn mean_chain_length(levels: u64, contenders: u64) -> Result<f64> {
    // The small ones first, so that none is lost beside the sum.
    Ok((1..=depth(levels, contenders)?).rev().map(|k| 1.0 / f64::from(k)).sum())
}

/// P(N > n), for n from 1.
///
/// The tails themselves, because their complements near 1 could not tell one confidence of many nines from the next.
/// The k-th contender moves them by P(N > n) += P(N = n) / k, where P(N = n) is the difference of two neighbours.
///
/// A tail depends on those of shorter chains only, so a table that ends somewhere is none the worse for it. It ends
/// behind the longest chain that can be asked for: 46, of 65,536 levels with a confidence of 1 - 2^-53, the last
/// number before 1. So the work is 48 steps a level.
///
/// A step is a weighted mean of two positive numbers: it makes no relative error larger and adds less than 2^-51, in
/// 65,536 steps less than 3·10^-11. Rounding never changes the order of two tails, so neither more contenders nor more
/// confidence ever give a shorter chain.
struct Tails([f64; LONGEST]);

/// No chain is longer, but for four in 10^18.
const LONGEST: usize = 48;

impl Tails {
    fn new(depth: u32) -> Self {
        let mut tails = [0.0; LONGEST];
        for k in 2..=depth {
            let record = 1.0 / f64::from(k);
            // P(N > 0): somebody is the first.
            let mut shorter = 1.0;
            for tail in &mut tails {
                let before = *tail;
                *tail += (shorter - before) * record;
                shorter = before;
            }
        }
        Tails(tails)
    }

    fn quantile(&self, confidence: f64) -> u32 {
        let doubt = 1.0 - confidence;
        let too_short = self.0.iter().take_while(|&&tail| tail > doubt).count();
        1 + too_short as u32
    }
}

/// K: how many distinct priorities can come one after the other.
fn depth(levels: u64, contenders: u64) -> Result<u32> {
    let within = |field, number, most| match number {
        1.. if number <= most => Ok(number),
        _ => Err(Error::invalid(field, format_args!("{number} is out of range; 1 to {most} are allowed"))),
    };
    let depth = within("levels", levels, MAX_LEVELS)?.min(within("contenders", contenders, MAX_CONTENDERS)?);
    Ok(depth as u32)
}

fn needed<'a, T>(
    options: &mut Options<'a>,
    key: &'static str,
    read: impl FnOnce(&'a Value) -> Result<T>,
) -> Result<T> {
    options.take(key, read)?.ok_or_else(|| Error::invalid(key, "is missing"))
}
