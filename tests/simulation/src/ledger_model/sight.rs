//! A limit as it stands when it is asked for: what it allows, and whether what was said of it is true.

use super::used::{Kept, Used};
use crate::charges::{Cost, Kind, Word};
use crate::checker::Breach;

/// After how long of waiting room is kept, for how long, and by how much one may come later and need not stand back.
const PATIENCE: u64 = 500_000;
/// A limit at a moment.
pub(super) struct Sight {
    pub now: u64,
    /// How far that is ahead of the wall clock.
    pub ahead: u64,
    pub used: Used,
    /// Whether what is kept is kept otherwise by the rule that asks, and whether nobody knows how much of it was forgotten.
    pub turned: bool,
    pub unknown: bool,
    /// Who waits for it.
    pub waiter: Option<Waiter>,
}

/// One who waits: for whom of its process all who wait for the same stand in one line.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub line: String,
    pub since: u64,
    /// For how much longer room is kept for it.
    pub far: u64,
}

impl Sight {
    /// Of a limit of which nothing is kept.
    pub fn at(now: u64) -> Self {
        Sight { now, ahead: 0, used: Used::Nothing, turned: false, unknown: false, waiter: None }
    }

    /// Whether it fits, and nobody came before who waits for that room.
    pub fn allows(&self, cost: &Cost) -> bool {
        self.used.allows(cost, self.now, cost.cost) && !self.stands_back(cost)
    }

    /// How much of its own time passes in so much by the wall clock, where it is written now.
    fn passed(&self, time: u64) -> u64 {
        time - self.ahead.min(time / 2)
    }

    fn stands_back(&self, cost: &Cost) -> bool {
        let (Used::Flights(_, Some(kept)), Some(Waiter { line, since, .. })) = (&self.used, &self.waiter)
        else {
            return false;
        };
        let room = self.used.remaining(cost, self.now);
        let earlier = *line != kept.line && *since > kept.since + PATIENCE;
        earlier && cost.cost > 0 && room < cost.cost + kept.cost
    }

    /// Keeps room for who waits, and returns whether it does.
    pub fn keep(&mut self, cost: &Cost) -> bool {
        let (Used::Flights(_, kept), Some(Waiter { line, since, far })) = (&mut self.used, &self.waiter)
        else {
            return false;
        };
        let first = kept
            .as_ref()
            .is_none_or(|kept| *since < kept.since || *line == kept.line && *since <= kept.since + PATIENCE);
        let keeps = first && self.now - since >= PATIENCE;
        if keeps {
            let until = self.now + PATIENCE + far;
            *kept = Some(Kept { line: line.clone(), since: *since, until, cost: cost.cost });
        }
        keeps
    }

    pub fn charge(&mut self, of: &Cost, ttl: u64) {
        let (now, cost) = (self.now, of.cost);
        match &mut self.used {
            Used::Parts { parts, period, .. } => *parts += cost * u128::from(*period),
            Used::Cells(_) | Used::Flights(..) if cost == 0 => {}
            Used::Cells(cells) => cells.charge(now, cost),
            Used::Money(births) => births.charge(cost),
            Used::Flights(flights, kept) => {
                flights.push((now + ttl, cost));
                let line = self.waiter.as_ref().map(|waiter| &waiter.line);
                if kept.as_ref().map(|kept| &kept.line) == line {
                    *kept = None;
                }
            }
            Used::Nothing => {}
        }
    }

    /// Prolongs what is in flight until then, and returns whether it is.
    pub fn prolong(&mut self, amount: u128, until: u128, longer: u128) -> bool {
        let Used::Flights(flights, _) = &mut self.used else { return false };
        let flight = flights.iter_mut().find(|flight| u128::from(flight.0) == until && flight.1 == amount);
        flight.map(|flight| flight.0 = longer as u64).is_some()
    }

    /// Gives back what was charged at a mark, as far as it still counts; without one as if it was charged just now.
    pub fn give_back(&mut self, of: &Cost, amount: u128, mark: Option<u128>) {
        let now = self.now;
        let period = u128::from(of.period);
        match &mut self.used {
            // What has been refilled since is there already.
            Used::Parts { parts, refilled, since, .. }
                if mark.is_none_or(|mark| since.is_some_and(|since| since <= mark)) =>
            {
                let since = *refilled - mark.unwrap_or(*refilled);
                *parts = parts.saturating_sub((amount * period).saturating_sub(since));
            }
            Used::Cells(cells) if mark.is_none_or(|mark| u128::from(now) < mark + period) => {
                cells.give_back(of.period, now, amount, mark.map(|mark| mark as u64));
            }
            Used::Money(births) => births.give_back(amount),
            Used::Flights(flights, _) => {
                let landed =
                    flights.iter().position(|&flight| Some(flight.0.into()) == mark && flight.1 == amount);
                landed.map(|at| flights.remove(at));
            }
            _ => {}
        }
    }
}

/// Whether what was said of these limits, as they are, is true.
pub(super) fn judged(costs: &[Cost], sights: &[Sight], word: &Word) -> Result<(), Breach> {
    let Word::Judged { allowed, binding, remaining, retry, reset } = word else {
        return Err(Breach::new("M1", format!("{costs:?} was answered with {word:?}")));
    };
    let fits: Vec<bool> = sights.iter().zip(costs).map(|(sight, cost)| sight.allows(cost)).collect();
    let due = fits.iter().all(|fits| *fits);
    let (Some(sight), Some(cost)) = (sights.get(*binding), costs.get(*binding)) else {
        return Err(Breach::new("M1", format!("no cost {binding} among {costs:?}")));
    };
    let tell = |what: &str| {
        let used: Vec<&Used> = sights.iter().map(|sight| &sight.used).collect();
        format!("{what}: {word:?} for {costs:?}, of which {used:?} is used at {}", sight.now)
    };
    if *allowed != due {
        return Err(Breach::new(
            "M1",
            tell(if due { "refused what fits" } else { "allowed what does not fit" }),
        ));
    }
    if *remaining != sight.used.remaining(cost, sight.now) {
        return Err(Breach::new("M1", tell(&format!("{} remains", sight.used.remaining(cost, sight.now)))));
    }
    // Of those that allow the one of which least remains, of those that refuse the one that does so longest.
    let least = || sights.iter().zip(costs).map(|(sight, cost)| sight.used.remaining(cost, sight.now)).min();
    if due && least() != Some(*remaining) || !due && fits[*binding] {
        return Err(Breach::new("M1", tell("another binds")));
    }
    let by_the_wall = |time: u64| time + time.min(sight.ahead);
    if *reset != sight.used.empty_after(cost, sight.now).map(by_the_wall) {
        return Err(Breach::new("M2", tell("the time of its reset is wrong")));
    }
    if due {
        return if *retry == Some(0) { Ok(()) } else { Err(Breach::new("M2", tell("it is allowed now"))) };
    }
    let refusing = || sights.iter().zip(costs).zip(&fits).filter(|(_, fits)| !**fits).map(|(both, _)| both);
    let never = |cost: &Cost| cost.cost > cost.most() || cost.kind == Kind::Lifetime;
    let Some(retry) = *retry else {
        return if never(cost) { Ok(()) } else { Err(Breach::new("M2", tell("it will be allowed"))) };
    };
    // The first moment at which it would not be refused by this limit, and not before that of another.
    let later = |(sight, cost): (&Sight, &Cost), time: u64| {
        let time = sight.passed(time);
        let used = sight.used.at(cost, sight.now + time, time);
        match &used {
            // Who stands back does so while room is kept.
            Used::Flights(_, kept) if sight.used.allows(cost, sight.now, cost.cost) => kept.is_none(),
            // Of what is in flight, when the first ends that is not given back.
            Used::Flights(flights, _) => {
                matches!(&sight.used, Used::Flights(all, _) if flights.len() < all.len())
            }
            _ => used.allows(cost, sight.now + time, cost.cost),
        }
    };
    // To the microsecond, or one more where its time is slower.
    let before = retry.saturating_sub(1 + u64::from(sight.ahead > 0));
    let true_of_it = retry > 0 && later((sight, cost), retry) && !later((sight, cost), before);
    if !true_of_it || refusing().any(|(sight, cost)| never(cost) || !later((sight, cost), retry)) {
        return Err(Breach::new("M2", tell("the time told is not the first at which it is allowed")));
    }
    Ok(())
}
