//! How limits of money stood when this process last heard of them: what it has seen, a store that forgot is told.

use super::recent::Recent;
use crate::client::pool::courier::unsure;
use crate::error::Result;
use crate::id::Name;
use crate::limits::{
    Act, Amount, Charge, Envelope, MEMORY, Performed, Reply, Request, Seen, Standing, Verdict,
};
use crate::{Micros, SECOND};

/// What the store did not know as it performed an envelope: it forgot something while that was under way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unheard {
    seen: Seen,
    /// It forgot so often that what it charged then is perhaps counted by nobody.
    past: bool,
}

/// How limits of money stood, by the letter of their kind and their name.
#[derive(Debug, Default)]
pub(super) struct Standings {
    known: Recent<(char, Name), Known>,
}

#[derive(Debug)]
struct Known {
    standing: Standing,
    /// Until when it is remembered, on the local clock.
    until: Micros,
}

impl Standings {
    /// What is known of the limits that an envelope charges.
    pub fn seen(&self, envelope: &Envelope, now: Micros) -> Vec<Seen> {
        let seen = |(kind, limit): (char, &Name)| {
            let standing = self.standing(kind, limit, now)?.clone();
            Some(Seen { kind, limit: limit.clone(), standing })
        };
        envelope.of_money().into_iter().filter_map(seen).collect()
    }

    /// Whether it is not known how a limit of money stands that is charged, in the period that it is at this time of the store.
    pub fn lack(&self, charge: &Charge, now: Micros, store_time: Micros) -> bool {
        let standing = || self.standing(charge.rule.letter(), &charge.limit, now);
        let is_of_now = |standing: &Standing| standing.ends() == 0 || standing.ends() > store_time;
        charge.rule.is_of_money() && !standing().is_some_and(is_of_now)
    }

    /// Whether what is known of a limit that is charged is of a period that is over at this time of the store.
    pub fn are_of_before(&self, charge: &Charge, now: Micros, store_time: Micros) -> bool {
        let standing = self.standing(charge.rule.letter(), &charge.limit, now);
        standing.is_some_and(|standing| standing.ends() > 0 && standing.ends() <= store_time)
    }

    fn standing(&self, kind: char, limit: &Name, now: Micros) -> Option<&Standing> {
        let known = self.known.get(&(kind, limit.clone())).filter(|known| known.until > now)?;
        Some(&known.standing)
    }

    /// Whether anything is known still.
    pub fn remember(&self, now: Micros) -> bool {
        self.known.values().any(|known| known.until > now)
    }

    /// Learns how they stand after an envelope that was sent at `sent`. Counted from then, what is remembered is forgotten
    /// before the store forgets that it is not so any more.
    ///
    /// Returns those of which the store did not know all that is known here.
    pub fn learn(&mut self, envelope: &Envelope, performed: &Performed, sent: Micros) -> Vec<Unheard> {
        let mut more = Vec::new();
        for ((kind, limit), told) in envelope.of_money().into_iter().zip(&performed.standings) {
            let Some(told) = told else { continue };
            let ends = told.ends();
            let left = if ends > 0 { lasting(ends.saturating_sub(performed.now)) } else { MEMORY };
            let until = sent + left.min(MEMORY);
            let Some(known) = self.known.hear(&(kind, limit.clone())) else {
                let known = Known { standing: told.clone(), until };
                self.known.insert((kind, limit.clone()), known, |known| known.until <= sent);
                continue;
            };
            let mut past = false;
            if known.until <= sent {
                known.standing.clone_from(told);
            } else {
                past = known.standing.is_past(told);
                known.standing.update(told);
            }
            known.until = known.until.max(until);
            if past || known.standing.counts_more_than(told) {
                let seen = Seen { kind, limit: limit.clone(), standing: known.standing.clone() };
                more.push(Unheard { seen, past });
            }
        }
        more
    }
}

/// What a caller is told instead of that the store allowed its charge, as it did not know of `more`: that it is refused, if
/// with that more is used than its rule allows, or that nobody knows.
pub(super) fn correction(
    request: &Request,
    reply: Reply,
    more: &[Unheard],
    now: Micros,
) -> Option<Result<Reply>> {
    let charges = matches!(request.act, Act::Take | Act::Reserve { .. });
    if more.is_empty() || !charges || !matches!(reply, Reply::Judged(Verdict { allowed: true, .. })) {
        return None;
    }
    request.charges.iter().enumerate().find_map(|(binding, charge)| {
        let of = |more: &&Unheard| more.seen.kind == charge.rule.letter() && more.seen.limit == charge.limit;
        let Unheard { seen: Seen { standing, .. }, past } = more.iter().find(of)?;
        if charge.cost == Amount::ZERO {
            return None;
        }
        if *past {
            return Some(Err(unsure("it lost its memory again and again meanwhile")));
        }
        if standing.used() <= charge.rule.most() {
            return None;
        }
        let left = (standing.ends() > 0).then(|| standing.ends().saturating_sub(now));
        let verdict = Verdict {
            allowed: false,
            binding,
            remaining: Amount::ZERO,
            retry_after: left,
            reset_after: left,
        };
        Some(Ok(Reply::Judged(verdict)))
    })
}

/// For how long a standing is remembered whose period ends then by the store's clock: the local one may run faster. To
/// remember too much does no harm, as the store knows when the period is over.
fn lasting(left: Micros) -> Micros {
    left + left / 50 + 60 * SECOND
}

#[cfg(test)]
mod tests {
    use super::super::recent::MOST;
    use super::*;
    use crate::limits::{Charge, Rule};

    const START: Micros = 1_700_000_000 * SECOND;

    fn envelope(limit: &str, rule: Rule) -> Envelope {
        let charges = vec![Charge { limit: Name::new(limit).unwrap(), rule, cost: 1u64.into(), open: false }];
        Envelope { requests: vec![Request { act: Act::Take, charges }], ..Envelope::default() }
    }

    fn told(ends: Micros) -> Performed {
        let standing = Standing::parse(&format!("{START:016}{:016} 1 {ends} 1", 0));
        Performed { now: START, replies: Vec::new(), standings: vec![standing] }
    }

    #[test]
    fn a_standing_is_remembered_for_a_day_or_until_its_period_is_surely_over() {
        let lifetime = envelope("a", Rule::Lifetime { max: 9u64.into() });
        let budget = envelope("a", Rule::Budget { max: 9u64.into(), period: 3_600 * SECOND, offset: 0 });
        for (envelope, ends, lasts) in [
            (&lifetime, 0, MEMORY),
            (&budget, START + 1_000 * SECOND, 1_080 * SECOND),
            (&budget, START + 2 * MEMORY, MEMORY),
        ] {
            let mut standings = Standings::default();
            assert_eq!(standings.learn(envelope, &told(ends), 5), []);
            assert_eq!(standings.seen(envelope, 4 + lasts).len(), 1, "{ends}");
            assert_eq!(standings.seen(envelope, 5 + lasts), [], "{ends}");
        }
    }

    // Its charges are in no sum if nobody else has heard of them.
    #[test]
    fn an_answer_that_is_older_than_what_is_told_apart_is_not_believed() {
        let lifetime = envelope("a", Rule::Lifetime { max: 100u64.into() });
        let birth = |at: u64| format!("{:016}{:016}", START + at, 0);
        let others = |from| (from..from + 32).map(|at| format!(" {} 1 1", birth(at))).collect::<String>();
        let of = |text: String| {
            let standings = vec![Some(Standing::parse(&text).unwrap())];
            Performed { now: START, replies: Vec::new(), standings }
        };
        let left = Amount::from(1u64);
        let reply = Reply::Judged(Verdict {
            allowed: true,
            binding: 0,
            remaining: left,
            retry_after: None,
            reset_after: None,
        });
        let told = |more: &[Unheard]| correction(&lifetime.requests[0], reply, more, START);
        for (known, past) in [
            (format!("{} 1 0 33 {}{}", birth(50), birth(10), others(10)), true),
            (format!("{} 1 0 33 -{}", birth(50), others(10)), false),
            (format!("{} 1 0 0 {}", birth(50), birth(50)), false),
        ] {
            let mut standings = Standings::default();
            assert_eq!(standings.learn(&lifetime, &of(known), 5), []);
            let more = standings.learn(&lifetime, &of(format!("{} 1 0 1", birth(5))), 5);
            let told = told(&more).map(|told| told.unwrap_err().code());
            assert_eq!(told, past.then_some(crate::error::Code::StoreUnavailable), "{more:?}");
        }
    }

    // One who asked by a longer period had lengthened it, which the one did not know: both were allowed all that is left.
    #[test]
    fn an_answer_of_before_a_loss_counts_whatever_period_it_tells() {
        const HOUR: Micros = 3_600 * SECOND;
        let budget = envelope("a", Rule::Budget { max: 10u64.into(), period: HOUR, offset: 0 });
        let of = |at: Micros, ends: Micros| {
            let text = format!("{:016}{:016} 1 {} 6", START + at, 0, START + ends);
            Performed { now: START + at, replies: Vec::new(), standings: vec![Standing::parse(&text)] }
        };
        let judged = |allowed| {
            let (remaining, retry_after) = (4u64.into(), Some(0));
            Reply::Judged(Verdict { allowed, binding: 0, remaining, retry_after, reset_after: None })
        };
        let (minute, day) = (60 * SECOND, 14 * HOUR);
        for (first, second, forgot) in [
            // The store had forgotten it within that period.
            (of(minute, day), of(2 * minute, HOUR), true),
            (of(minute, HOUR), of(2 * minute, day), true),
            (of(minute, HOUR), of(2 * minute, HOUR), true),
            // The period was over, and with it what was used of it.
            (of(minute, HOUR), of(HOUR, 2 * HOUR), false),
            (of(minute, HOUR), of(HOUR + minute, day), false),
            // By the store's clock, or by one that took over from it and is a little behind.
            (of(minute, HOUR), of(HOUR - SECOND, 2 * HOUR), false),
        ] {
            for (first, second) in [(&first, &second), (&second, &first)] {
                let mut standings = Standings::default();
                assert_eq!(standings.learn(&budget, first, 5), []);
                let more = standings.learn(&budget, second, 5);
                let told = correction(&budget.requests[0], judged(true), &more, START + 2 * minute);
                let refused = matches!(told, Some(Ok(Reply::Judged(Verdict { allowed: false, .. }))));
                assert_eq!(refused, forgot, "{first:?} {second:?}");
                // And what is brought along next is all that counts.
                let used = standings.seen(&budget, 6)[0].standing.used();
                assert_eq!(used, if forgot { 12u64 } else { 6 }.into(), "{first:?} {second:?}");
            }
        }
    }

    fn lifetime(at: usize) -> Envelope {
        envelope(&format!("limit:{at}"), Rule::Lifetime { max: 9u64.into() })
    }

    fn remembered(standings: &Standings, limits: std::ops::Range<usize>, now: Micros) -> usize {
        limits.map(|at| standings.seen(&lifetime(at), now).len()).sum()
    }

    // After a burst all of it was forgotten but for what came last: what had been spent was allowed again after a loss.
    #[test]
    fn the_last_of_them_are_remembered_however_they_came() {
        for together in [0, 1] {
            let mut standings = Standings::default();
            for at in 0..MOST - 1_000 {
                standings.learn(&lifetime(at), &told(0), together * at as Micros);
            }
            for at in MOST - 1_000..MOST + 1 {
                standings.learn(&lifetime(at), &told(0), 6 * SECOND);
            }
            assert!(remembered(&standings, 0..MOST + 1, 7 * SECOND) >= MOST);
        }
    }
}
