//! Refusals that the store told a moment ago, so that those who ask again at once do not ask the store.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::answer::{LimitAnswer, Said};
use super::recent::Recent;
use crate::client::pool::acquisition::mix;
use crate::id::Name;
use crate::limits::{Amount, Charge, Request, Rule};
use crate::{Micros, SECOND};

/// How long a refusal is believed at most. Another process may give back meanwhile, or an administrator reset the limit;
/// and who asks once a second costs the store nothing.
pub(super) const BELIEVED: Micros = SECOND;

/// Into how many groups limits are put by their names: of those of one group a change of any is one of all, which keeps few refusals
/// from being remembered that could be.
const GROUPS: usize = 256;

/// What was refused, by limit.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Which limits are of one group is drawn from it: strangers are not to choose that by their names.
    seed: u64,
    known: Recent<Name, Refusal>,
    /// How often something was given back or reset here.
    changes: u64,
    /// How often it was as that was last a limit of each group; none before the first time.
    changed: Vec<u64>,
}

#[derive(Debug)]
struct Refusal {
    rule: Rule,
    cost: Amount,
    until: Micros,
    /// When it would be allowed, and as if never used, on the local clock; nothing if never.
    retry: Option<Micros>,
    reset: Option<Micros>,
    remaining: Amount,
}

impl Refusals {
    pub fn new(seed: u64) -> Self {
        Refusals { seed, ..Refusals::default() }
    }

    /// A refusal of these charges, by the same rules: of what is known the longest, as the store tells it. One of less would be as
    /// sure, but its time would be too soon.
    pub fn recall(&self, charges: &[Charge], now: Micros) -> Option<LimitAnswer> {
        let covering = |charge: &Charge| {
            let refusal = self.known.get(&charge.limit)?;
            let covers = refusal.rule == charge.rule && charge.cost == refusal.cost && now < refusal.until;
            covers.then_some((charge.limit.clone(), refusal))
        };
        // The last of the longest from behind is the first.
        let known = charges.iter().rev().filter_map(covering);
        let (limit, refusal) = known.max_by_key(|(_, refusal)| refusal.retry.unwrap_or(Micros::MAX))?;
        Some(LimitAnswer {
            allowed: false,
            limit: Some(limit),
            remaining: refusal.remaining,
            retry_after_micros: refusal.retry.map(|retry| retry.saturating_sub(now)),
            reset_after_micros: refusal.reset.map(|reset| reset.saturating_sub(now)),
            said: Said::Memory,
        })
    }

    /// How often something has changed here: what is asked before a change says nothing of what is after it.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Keeps a refusal of a request that was sent at `sent` and answered at `heard`, unless its limit has changed since `changes` was told.
    /// Others may: in a busy process something is always given back somewhere.
    pub fn keep(
        &mut self,
        charge: &Charge,
        answer: &LimitAnswer,
        (sent, heard): (Micros, Micros),
        changes: u64,
    ) {
        let last = self.changed.get(self.group(&charge.limit)).copied().unwrap_or(0);
        // What is in flight may be given back at any time.
        if last > changes || matches!(charge.rule, Rule::InFlight { .. }) {
            return;
        }
        let retry = answer.retry_after_micros;
        // It is believed from before it was asked, as the store's answer holds for longer than that; and its time is told from when
        // it was heard, as whoever waits for less is refused again.
        let refusal = Refusal {
            rule: charge.rule,
            cost: charge.cost,
            until: sent + retry.map_or(BELIEVED, |retry| retry.min(BELIEVED)),
            retry: retry.map(|retry| heard + retry),
            reset: answer.reset_after_micros.map(|time| heard + time),
            remaining: answer.remaining,
        };
        self.known.insert(charge.limit.clone(), refusal, |refusal| refusal.until <= sent);
    }

    /// There may be more of the limits that this frees.
    pub fn forget(&mut self, request: &Request) {
        for limit in request.freed() {
            self.changes += 1;
            self.changed.resize(GROUPS, 0);
            let group = self.group(limit);
            if let Some(last) = self.changed.get_mut(group) {
                *last = self.changes;
            }
            self.known.remove(limit);
        }
    }

    fn group(&self, limit: &Name) -> usize {
        // The lower bits suffice.
        mix(self.seed ^ FxBuildHasher.hash_one(limit)) as usize % GROUPS
    }
}

#[cfg(test)]
mod tests {
    use super::super::recent::MOST;
    use super::*;
    use crate::limits::Act;

    fn charge(limit: &str) -> Charge {
        Charge {
            limit: Name::new(limit).unwrap(),
            rule: Rule::Refill { max: 10, period: SECOND },
            cost: 1u64.into(),
            open: false,
        }
    }

    fn refused(retry: Option<Micros>) -> LimitAnswer {
        LimitAnswer {
            allowed: false,
            limit: None,
            remaining: Amount::ZERO,
            retry_after_micros: retry,
            reset_after_micros: retry,
            said: Said::Store,
        }
    }

    fn recalled(refusals: &Refusals, limits: &[&str], now: Micros) -> Option<(String, Option<Micros>)> {
        let charges: Vec<_> = limits.iter().map(|limit| charge(limit)).collect();
        let answer = refusals.recall(&charges, now)?;
        Some((answer.limit?.as_str().to_owned(), answer.retry_after_micros))
    }

    // The first of them was told, so that who waited asked again too soon.
    #[test]
    fn of_several_the_one_is_told_that_refuses_longest() {
        let mut refusals = Refusals::default();
        for (limit, retry) in [("a", 3 * SECOND), ("b", 7 * SECOND), ("c", 7 * SECOND)] {
            refusals.keep(&charge(limit), &refused(Some(retry)), (5, 5), 0);
        }
        let told = |limits: &[&str]| recalled(&refusals, limits, 10);
        assert_eq!(told(&["a", "z"]), Some(("a".to_owned(), Some(3 * SECOND - 5))));
        assert_eq!(told(&["a", "b", "c"]), Some(("b".to_owned(), Some(7 * SECOND - 5))));
        refusals.keep(&charge("d"), &refused(None), (5, 5), 0);
        assert_eq!(recalled(&refusals, &["a", "b", "d", "c"], 10), Some(("d".to_owned(), None)));
    }

    // Whoever asked at once what is never allowed asked the store each time.
    #[test]
    fn what_is_refused_for_ever_is_believed_for_a_second_too() {
        let mut refusals = Refusals::default();
        refusals.keep(&charge("a"), &refused(None), (5, 5), 0);
        assert_eq!(recalled(&refusals, &["a"], 4 + SECOND), Some(("a".to_owned(), None)));
        assert_eq!(recalled(&refusals, &["a"], 5 + SECOND), None);
        refusals.forget(&Request { act: Act::Refund, charges: vec![charge("a")] });
        assert_eq!(recalled(&refusals, &["a"], 5), None);
    }

    // It was counted from before it was asked, and who waited for so long was refused again: by all that it had waited here.
    #[test]
    fn the_time_that_is_told_is_never_too_short() {
        let mut refusals = Refusals::default();
        refusals.keep(&charge("a"), &refused(Some(SECOND)), (5, 905_005), 0);
        assert_eq!(recalled(&refusals, &["a"], 950_005), Some(("a".to_owned(), Some(955_000))));
        // And is believed for no longer than it surely holds.
        assert_eq!(recalled(&refusals, &["a"], 5 + SECOND), None);
    }

    // While anything was given back anywhere each who asked again at once asked the store.
    #[test]
    fn what_is_given_back_of_one_limit_says_nothing_of_others() {
        let mut refusals = Refusals::default();
        let freed = |limit: &str| Request { act: Act::Refund, charges: vec![charge(limit)] };
        let others = || (0..GROUPS).map(|at| format!("other:{at}"));
        refusals.forget(&freed("a"));
        let changes = refusals.changes();
        refusals.forget(&freed("a"));
        let kept = others().filter(|other| {
            refusals.keep(&charge(other), &refused(Some(SECOND)), (5, 5), changes);
            recalled(&refusals, &[other], 10).is_some()
        });
        assert!(kept.count() > GROUPS / 2);
        refusals.keep(&charge("a"), &refused(Some(SECOND)), (5, 5), changes);
        assert_eq!(recalled(&refusals, &["a"], 10), None, "it was asked before that");
        let changes = refusals.changes();
        refusals.keep(&charge("a"), &refused(Some(SECOND)), (5, 5), changes);
        assert!(recalled(&refusals, &["a"], 10).is_some());
    }

    // Nothing more was, and each further one looked at all that was there.
    #[test]
    fn in_a_crowd_the_last_are_remembered() {
        let mut refusals = Refusals::default();
        for at in 0..3 * MOST {
            refusals.keep(&charge(&format!("limit:{at}")), &refused(Some(SECOND)), (5, 5), 0);
        }
        assert!((2 * MOST..3 * MOST).all(|at| recalled(&refusals, &[&format!("limit:{at}")], 10).is_some()));
    }
}
