//! What callers were surely allowed of a limit, held against what any window may hold (rule S9).
//!
//! A call is charged at some time between its beginning and its end: what lies in a window as a whole was charged in it.
//! Time is the store's, which runs with true time and jumps ahead where the server's clock does: that cannot be told from
//! a quiet time. Where the clock is set back, a limit's time goes on.

use std::collections::BTreeMap;

use crate::charges::{Cost, Kind};
use crate::checker::Breach;
use crate::world::Instant;

/// The longest windows that are looked at, in periods.
const REACH: u64 = 3;

/// What was allowed of all limits.
#[derive(Debug, Default)]
pub struct Windows {
    limits: BTreeMap<(Kind, String), Allowed>,
    /// When the server's clock was set forward, and by how much.
    ahead: Vec<(Instant, u64)>,
    /// When it was set back, and by how much.
    back: Vec<(Instant, u64)>,
    /// When the store lost what was used.
    losses: Vec<Instant>,
    /// How much faster than true time the clock runs at most, in millionths.
    drift: u64,
}

/// What was allowed of one limit.
#[derive(Debug, Default)]
struct Allowed {
    spans: Vec<Span>,
    /// What was given back that was not reserved: its caller is trusted.
    refunds: Vec<(Instant, u128)>,
    /// When the limit was reset.
    resets: Vec<Instant>,
    /// The highest maximum and burst.
    rule: Option<Cost>,
    /// Whether the periods of a budget begin at another time by now: then one more of them may have begun.
    moved: bool,
}

/// Something that was charged in this time.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Instant,
    to: Instant,
    cost: u128,
}

impl Windows {
    /// Those of a clock that runs faster than true time by so many millionths at most.
    pub fn of_clock(drift: u64) -> Self {
        Windows { drift, ..Windows::default() }
    }

    /// The server's clock was set by so much.
    pub fn stepped(&mut self, at: Instant, by: i64) {
        match by {
            0.. => self.ahead.push((at, by.unsigned_abs())),
            _ => self.back.push((at, by.unsigned_abs())),
        }
    }

    /// What was used may be forgotten from here on.
    pub fn lost(&mut self, at: Instant) {
        self.losses.push(at);
    }

    /// The limit was asked for by this rule: whoever asks by a lower one, no more is allowed than by the highest, and in the
    /// shortest window no more than in any.
    pub fn asked(&mut self, cost: &Cost) {
        let limit = self.limit(cost);
        let rule = limit.rule.get_or_insert_with(|| cost.clone());
        rule.max = rule.max.max(cost.max);
        rule.period = rule.period.min(cost.period);
        limit.moved |= cost.kind == Kind::Budget && rule.extra != cost.extra;
    }

    /// The limit was reset.
    pub fn reset(&mut self, at: Instant, cost: &Cost) {
        self.limit(cost).resets.push(at);
    }

    /// So much was given back that was not reserved.
    pub fn refunded(&mut self, at: Instant, cost: &Cost) {
        self.limit(cost).refunds.push((at, cost.cost));
    }

    /// A caller was allowed this, at some time from `from` to `to`.
    pub fn allowed(&mut self, from: Instant, to: Instant, cost: &Cost) {
        if cost.kind != Kind::Each && cost.cost > 0 {
            self.asked(cost);
            let limit = self.limit(cost);
            limit.spans.push(Span { from, to, cost: cost.cost });
        }
    }

    /// The same, of nothing that was allowed yet, where the store forgets nothing.
    pub fn of_one_that_remembers(&self) -> Self {
        let limits = self.limits.iter().map(|(limit, allowed)| {
            let Allowed { refunds, resets, rule, moved, .. } = allowed;
            let (refunds, resets, rule, moved) = (refunds.clone(), resets.clone(), rule.clone(), *moved);
            (limit.clone(), Allowed { spans: Vec::new(), refunds, resets, rule, moved })
        });
        Windows {
            limits: limits.collect(),
            ahead: self.ahead.clone(),
            back: self.back.clone(),
            losses: Vec::new(),
            drift: self.drift,
        }
    }

    /// Looks at all windows.
    pub fn judge(&mut self) -> Result<(), Breach> {
        let mut limits = std::mem::take(&mut self.limits);
        for ((kind, name), limit) in &mut limits {
            let Some(rule) = limit.rule.clone() else { continue };
            limit.spans.sort_by_key(|span| span.to);
            // What is wrong in a longer window is wrong in a shorter one, or begins with the first take or one after a
            // loss: to look at all of them would take the square of a world's length.
            let reach = if rule.period == 0 { u64::MAX } else { REACH * rule.period };
            for first in &limit.spans {
                let mut sum = 0u128;
                for span in limit.spans.iter().filter(|span| span.from >= first.from) {
                    sum += span.cost;
                    let (from, to) = (first.from, span.to);
                    if to - from > reach {
                        break;
                    }
                    let Some(most) = self.most(limit, &rule, from, to) else { break };
                    let parts =
                        if matches!(kind, Kind::Refill | Kind::Gcra) { rule.period.into() } else { 1 };
                    if sum * parts > most {
                        let text = format!(
                            "{sum} of {name} was allowed from {:.6} s to {:.6} s, at most {} is, by {rule:?}",
                            from as f64 / 1e6,
                            to as f64 / 1e6,
                            most / parts
                        );
                        return Err(Breach::new("S9", text));
                    }
                }
            }
        }
        Ok(())
    }

    /// The most of a limit in a window, of rates times the period; `None` if the window is longer than is bounded.
    fn most(&self, limit: &Allowed, rule: &Cost, from: Instant, to: Instant) -> Option<u128> {
        let passed = self.passed(from, to);
        // All times are in the order of time.
        let within = |times: &[Instant]| {
            (times.partition_point(|at| *at <= to) - times.partition_point(|at| *at < from)) as u128
        };
        let refunds = limit.refunds.iter().filter(|(at, _)| (from..=to).contains(at));
        let given: u128 = refunds.map(|(_, amount)| amount).sum();
        // A store that loses its memory allows one more whole, and so does who resets it.
        let anew = 1 + within(&self.losses) + within(&limit.resets);
        let period = u128::from(rule.period);
        match rule.kind {
            Kind::Refill | Kind::Gcra => {
                let burst = if rule.kind == Kind::Gcra { rule.extra.into() } else { rule.max };
                let whole = anew * burst + given;
                Some(whole * period + rule.max * u128::from(passed))
            }
            Kind::Rolling if passed >= rule.period => None,
            Kind::Rolling | Kind::Lifetime => Some(anew * rule.max + given),
            Kind::Budget => {
                let begun = self.begun(rule, from, to) + u128::from(limit.moved);
                Some((anew + begun) * rule.max + given)
            }
            Kind::InFlight | Kind::Each => None,
        }
    }

    /// How much time passed by the store's clock, at most.
    fn passed(&self, from: Instant, to: Instant) -> u64 {
        let steps = self.ahead.iter().filter(|(at, _)| (from..=to).contains(at));
        let true_time = to - from;
        true_time
            + true_time * self.drift / 1_000_000
            + u64::from(self.drift > 0) * 2
            + steps.map(|(_, by)| by).sum::<u64>()
    }

    /// How many periods of a budget began in a window, at most.
    fn begun(&self, rule: &Cost, from: Instant, to: Instant) -> u128 {
        let passed = self.passed(from, to);
        // Where the calendar is not known, or was entered twice, any may have begun.
        let any = passed / rule.period + 1;
        if self.drift > 0 {
            return any.into();
        }
        let skew = |at: Instant| {
            let sum = |steps: &[(Instant, u64)]| {
                steps.iter().filter(|(when, _)| *when < at).map(|(_, by)| by).sum::<u64>()
            };
            sum(&self.ahead) as i64 - sum(&self.back) as i64
        };
        if self.back.iter().any(|(at, _)| *at <= to) {
            return u128::from(any) + u128::from(any);
        }
        let first = (crate::server::BEGINNING + from).saturating_add_signed(skew(from)) - rule.extra;
        ((first + passed) / rule.period - first / rule.period).into()
    }

    fn limit(&mut self, cost: &Cost) -> &mut Allowed {
        self.limits.entry((cost.kind, cost.limit.clone())).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(kind: Kind, max: u128, period: u64, cost: u128) -> Cost {
        Cost { limit: "a".to_owned(), kind, max, period, extra: 0, cost }
    }

    fn breaks(fill: impl FnOnce(&mut Windows)) -> bool {
        let mut windows = Windows::default();
        fill(&mut windows);
        windows.judge().is_err()
    }

    #[test]
    fn what_lies_in_a_window_as_a_whole_counts() {
        let rolling = |amount| cost(Kind::Rolling, 10, 100, amount);
        let two = |first: (u64, u64), second: (u64, u64)| {
            breaks(|windows| {
                windows.allowed(first.0, first.1, &rolling(6));
                windows.allowed(second.0, second.1, &rolling(5));
            })
        };
        assert!(two((0, 5), (90, 99)));
        assert!(two((0, 50), (10, 20)), "one within the other");
        assert!(!two((0, 5), (90, 100)), "it may have been charged when the first had left");
    }

    #[test]
    fn rates_refill_and_whoever_loses_or_resets_allows_one_more() {
        let refill = |amount| cost(Kind::Refill, 10, 100, amount);
        let second = |at, extra: &dyn Fn(&mut Windows)| {
            breaks(|windows| {
                windows.allowed(0, 0, &refill(10));
                extra(windows);
                windows.allowed(at, at, &refill(3));
            })
        };
        assert!(second(29, &|_| {}));
        assert!(!second(30, &|_| {}));
        assert!(!second(29, &|windows| windows.lost(10)));
        assert!(!second(29, &|windows| windows.reset(10, &refill(0))));
        assert!(!second(29, &|windows| windows.refunded(10, &refill(1))));
        assert!(!second(29, &|windows| windows.stepped(10, 1)));
        assert!(second(29, &|windows| windows.stepped(10, -1)));
    }

    // Each maximum in turn was allowed once more.
    #[test]
    fn maxima_that_change_allow_no_more_than_the_highest() {
        let refill = |max, amount| cost(Kind::Refill, max, 100, amount);
        let both = |second| {
            breaks(|windows| {
                windows.allowed(0, 0, &refill(10, 10));
                windows.asked(&refill(4, 0));
                windows.allowed(10, 10, &refill(4, second));
            })
        };
        assert!(!both(1) && both(2));
    }

    #[test]
    fn a_budget_begins_anew_with_each_period_of_the_calendar() {
        let budget = |amount| cost(Kind::Budget, 10, 1_000_000, amount);
        // The world begins 123,456 us after the beginning of one.
        let two = |first: u64, second: u64| {
            breaks(|windows| {
                windows.allowed(first, first, &budget(6));
                windows.allowed(second, second, &budget(6));
            })
        };
        assert!(two(0, 876_543));
        assert!(!two(0, 876_544));
        assert!(two(876_544, 1_876_543));
    }
}
