//! Random traces against the exact model, and the bounds that no trace passes.

use proptest::prelude::*;

use super::model::{Changing, Model, Windows, sum};
use super::scene::{START, Scene, charge};
use crate::limits::{Act, Amount, CELLS, MAX_BACKLOG, Rule};
use crate::{Micros, SECOND};

/// Rates of every size: slow and fast, round and odd.
fn rates() -> impl Strategy<Value = (u64, Micros)> {
    prop_oneof![
        (1..20u64, 1..50u64),
        (1..1_000_000u64, Just(SECOND)),
        (Just(1_000_000u64), Just(SECOND)),
        (1..10_000_000u64, 1..1_000_000_000_000u64),
        (Just(999_999_999_999_989), Just(366 * 24 * 3600 * SECOND - 1)),
    ]
}

/// Steps in thousandths of a period, and costs in hundredths of the maximum.
fn steps() -> impl Strategy<Value = Vec<(u64, u64, bool)>> {
    let pass = prop_oneof![Just(0), 0..3u64, 0..200u64, 900..1_200u64];
    let cost = prop_oneof![Just(0), Just(1), 1..30u64, 90..110u64];
    prop::collection::vec((pass, cost, any::<bool>()), 1..60)
}

fn part(of: u64, share: u64, in_all: u64, at_least: u64) -> u64 {
    ((u128::from(of) * u128::from(share) / u128::from(in_all)) as u64).max(at_least.min(share))
}

fn check_against_model(
    rule: Rule,
    max: u64,
    period: Micros,
    steps: &[(u64, u64, bool)],
) -> Result<(), TestCaseError> {
    let (mut scene, mut model) = (Scene::new(), Model::new(rule, START));
    for &(pass, cost, odd) in steps {
        scene.pass(part(period, pass, 1_000, 1) + u64::from(odd));
        let cost = part(max, cost, 100, 1);
        let (remaining, retry) = model.judge(scene.wall, cost);
        let peeked = scene.judge(Act::Peek, &[charge("a", rule, cost)]);
        prop_assert_eq!(i128::from(peeked.remaining.saturating_u64()), remaining);
        prop_assert_eq!(peeked.retry_after.map(i128::from), retry);
        prop_assert_eq!(peeked.allowed, i128::from(cost) <= remaining);
        let taken = scene.take(rule, cost);
        prop_assert_eq!(taken.allowed, peeked.allowed);
        if taken.allowed {
            model.take(scene.wall, cost);
            prop_assert_eq!(i128::from(taken.remaining.saturating_u64()), model.judge(scene.wall, 0).0);
        } else if let Some(retry) = taken.retry_after {
            // The told time is the first at which it is allowed.
            prop_assert!(retry > 0);
            prop_assert!(scene.clone().pass(retry).take(rule, cost).allowed);
            prop_assert!(!scene.clone().pass(retry - 1).take(rule, cost).allowed);
        }
        // And the other one the first at which nothing is left of it.
        let reset = scene.judge(Act::Peek, &[charge("a", rule, 0)]).reset_after.unwrap_or_default();
        prop_assert_eq!(
            scene.clone().pass(reset).judge(Act::Peek, &[charge("a", rule, 0)]).reset_after,
            Some(0)
        );
    }
    // No window admits more than the burst and what refills in it.
    for &(from, _) in &model.taken {
        for &(to, _) in model.taken.iter().filter(|(to, _)| *to >= from) {
            let whole = u128::from(max) * u128::from(period) + u128::from(max) * u128::from(to - from);
            prop_assert!(sum(&model.taken, from, to) * u128::from(period) <= whole);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn refill_is_the_seeds_equation((max, period) in rates(), steps in steps()) {
        check_against_model(Rule::Refill { max, period }, max, period, &steps)?;
    }

    #[test]
    fn gcra_is_exact((max, period) in rates(), steps in steps()) {
        check_against_model(Rule::Gcra { max, period, burst: max }, max, period, &steps)?;
    }

    #[test]
    fn no_window_holds_more_than_its_maximum((max, period) in rates(), steps in steps()) {
        let rule = Rule::Rolling { max, period };
        let (mut scene, mut taken) = (Scene::new(), Vec::new());
        for (pass, cost, odd) in steps {
            scene.pass(part(period, pass, 1_000, 1) + u64::from(odd));
            let cost = part(max, cost, 100, 1);
            let now = scene.wall;
            let verdict = scene.take(rule, cost);
            if verdict.allowed {
                taken.push((now, cost));
                prop_assert!(sum(&taken, now - period + 1, now) <= u128::from(max));
            } else if cost <= max {
                // Refused only if the window, a grain longer, has no room.
                let longer = period + period.div_ceil(CELLS);
                prop_assert!(sum(&taken, now - longer + 1, now) + u128::from(cost) > u128::from(max));
                let retry = verdict.retry_after.unwrap_or_default();
                prop_assert!(scene.clone().pass(retry).take(rule, cost).allowed);
                prop_assert!(!scene.clone().pass(retry - 1).take(rule, cost).allowed);
            }
        }
    }

    // Whatever maxima are asked with, in whatever order: the seed's equation by the rule that asks, no usage lost, and in no
    // window more than the highest allows.
    #[test]
    fn a_maximum_that_changes_loses_no_usage(
        // With less than three hundredths, the slowest rate would take longer than is told to work off what the highest allows.
        (max, period) in rates(), shares in prop::collection::vec(3..=100u64, 2..4), steps in steps(),
        whose in prop::collection::vec(any::<prop::sample::Index>(), 60), gcra in any::<bool>(),
    ) {
        let rules: Vec<Rule> = shares.iter().map(|share| part(max, *share, 100, 1).max(1)).map(|max| match gcra {
            true => Rule::Gcra { max, period, burst: max },
            false => Rule::Refill { max, period },
        }).collect();
        let (mut scene, mut model) = (Scene::new(), Changing::new(period, START));
        for (&(pass, cost, odd), whose) in steps.iter().zip(whose) {
            scene.pass(part(period, pass, 1_000, 1) + u64::from(odd));
            let (rule, cost) = (*whose.get(&rules), part(max, cost, 100, 1));
            let most = rule.most().saturating_u64();
            let expected = model.remaining(scene.wall, most);
            let peeked = scene.judge(Act::Peek, &[charge("a", rule, cost)]);
            prop_assert_eq!(i128::from(peeked.remaining.saturating_u64()), expected.max(0));
            prop_assert_eq!(peeked.allowed, cost == 0 || i128::from(cost) <= expected);
            let taken = scene.take(rule, cost);
            prop_assert_eq!(taken.allowed, peeked.allowed);
            model.ask(scene.wall, most, cost, taken.allowed);
            if let (false, Some(retry)) = (taken.allowed, taken.retry_after) {
                // The told time is true however far the usage is above the maximum.
                prop_assert!(retry < MAX_BACKLOG && scene.clone().pass(retry).take(rule, cost).allowed);
                prop_assert!(!scene.clone().pass(retry - 1).take(rule, cost).allowed);
            }
        }
        let most = rules.iter().map(|rule| rule.most().saturating_u64()).max().unwrap_or(0);
        for &(from, _) in &model.taken {
            for &(to, _) in model.taken.iter().filter(|(to, _)| *to >= from) {
                let whole = u128::from(most) * u128::from(period + (to - from));
                prop_assert!(sum(&model.taken, from, to) * u128::from(period) <= whole);
            }
        }
    }

    // Of two who ask by different periods, as often as those are long, each finds all that both were allowed in its window:
    // never too much is taken, and too long counts what was at most a grain of its own window.
    #[test]
    fn windows_of_two_periods_hold_no_more_than_their_maxima(
        (max, period) in rates(), steps in steps(), shares in prop::array::uniform2(1..=100u64),
        whose in prop::collection::vec(any::<bool>(), 60), gives in any::<bool>(), acts in prop::collection::vec(0..6u8, 60),
    ) {
        let of = |max, period| Rule::Rolling { max, period };
        let (brief, least) = (part(period, shares[0], 100, 1).max(1), part(max, shares[1], 100, 1).max(1));
        let windows = [(max, period), (least, brief)];
        let (mut scene, mut model, mut reserved) = (Scene::new(), Windows::default(), Vec::new());
        let mut asked = [START; 2];
        for (max, period) in windows {
            prop_assert!(scene.take(of(max, period), u64::from(model.hold(START, 1) == 0)).allowed);
            if model.hold(START, 1) == 0 {
                model.take(START, 1);
            }
        }
        for (id, (((pass, cost, odd), short), act)) in (1..).zip(steps.into_iter().zip(whose).zip(acts)) {
            let pass = (part(period, pass, 1_000, 1) + u64::from(odd)).min(period.saturating_sub(1));
            for (last, (max, period)) in asked.iter_mut().zip(windows) {
                if *last + windows[0].1 <= scene.wall + pass {
                    prop_assert!(scene.take(of(max, period), 0).allowed);
                    *last = scene.wall;
                }
            }
            scene.pass(pass);
            let (now, (max, period)) = (scene.wall, windows[usize::from(short)]);
            let (rule, cost) = (of(max, period), part(max, cost, 100, 1));
            // The end of a reservation that is over by then tells no period.
            if act > 0 || !gives {
                asked[usize::from(short)] = now;
            }
            match act {
                0 if gives && !reserved.is_empty() => {
                    let (id, at, cost) = reserved.swap_remove(cost as usize % reserved.len());
                    scene.settle(Act::GiveBack { id }, &[charge("a", rule, cost)]);
                    model.give_back(now, period, (at, cost));
                }
                1 if gives => {
                    let act = Act::Reserve { id, ttl: 4 * windows[0].1, waited: None };
                    if scene.judge(act, &[charge("a", rule, cost)]).allowed {
                        reserved.push((id, now, cost));
                        model.take(now, cost);
                        prop_assert!(cost == 0 || model.hold(now, period) <= max.into());
                    }
                }
                _ => {
                    let verdict = scene.take(rule, cost);
                    if verdict.allowed {
                        model.take(now, cost);
                        prop_assert!(cost == 0 || model.hold(now, period) <= max.into());
                    } else if cost <= max {
                        let longer = period + period.div_ceil(CELLS);
                        prop_assert!(model.hold(now, longer) + u128::from(cost) > max.into());
                        let retry = verdict.retry_after.unwrap_or_default();
                        prop_assert!(scene.clone().pass(retry).take(rule, cost).allowed);
                        prop_assert!(!scene.clone().pass(retry - 1).take(rule, cost).allowed);
                    }
                }
            }
        }
    }

    // Whatever periods are asked with, however seldom: each finds what both were allowed in the shortest window at least, of
    // which nothing is given back that is not in it.
    #[test]
    fn a_window_of_any_period_holds_what_the_shortest_does(
        (max, period) in rates(), steps in steps(), shares in prop::collection::vec((1..=100u64, 1..=100u64), 1..5),
        whose in prop::collection::vec(any::<prop::sample::Index>(), 60), acts in prop::collection::vec(0..40u8, 60),
    ) {
        let window = |(long, high): &(u64, u64)| (part(max, *high, 100, 1).max(1), part(period, *long, 100, 1).max(1));
        let windows: Vec<(u64, Micros)> = shares.iter().map(window).collect();
        let shortest = windows.iter().map(|(_, period)| *period).min().unwrap_or_default();
        let (mut scene, mut model, mut reserved) = (Scene::new(), Windows::default(), Vec::new());
        for (at, (((pass, cost, odd), whose), act)) in steps.into_iter().zip(whose).zip(acts).enumerate() {
            scene.pass(part(period, pass, 1_000, 1) + u64::from(odd));
            let (now, &(max, period)) = (scene.wall, whose.get(&windows));
            let (rule, cost) = (Rule::Rolling { max, period }, part(max, cost, 100, 1));
            let charges = [charge("a", rule, cost)];
            let (id, ttl) = (at as u128 + 1, 100 * period);
            match act {
                0 => {
                    scene.judge(Act::Reset, &charges);
                    model.reset();
                }
                1..10 if !reserved.is_empty() => {
                    let (id, at, cost) = reserved.swap_remove(cost as usize % reserved.len());
                    scene.settle(Act::GiveBack { id }, &[charge("a", rule, cost)]);
                    model.give_back(now, period, (at, cost));
                }
                _ => {
                    let reserves = act < 20;
                    let act = if reserves { Act::Reserve { id, ttl, waited: None } } else { Act::Take };
                    if scene.judge(act, &charges).allowed {
                        model.take(now, cost);
                        prop_assert!(cost == 0 || model.hold(now, shortest) <= max.into());
                        reserved.extend(reserves.then_some((id, now, cost)));
                    }
                }
            }
        }
    }

    // Of budgets of two periods, of which the longer is asked by in each of its periods, each finds all that both were allowed in
    // its own.
    #[test]
    fn budgets_of_two_periods_hold_no_more_than_their_maxima(
        brief in 1..1_000_000u64, times in 1..50u64, maxima in prop::array::uniform2(1..1_000u64), offset in any::<u64>(),
        steps in steps(), whose in prop::collection::vec(any::<bool>(), 60), acts in prop::collection::vec(0..4u8, 60),
    ) {
        let long = brief * times;
        let offset = offset % long;
        let of = |which: usize| {
            let period = [long, brief][which];
            (maxima[which], period, offset % period)
        };
        let rule = |which| {
            let (max, period, offset) = of(which);
            Rule::Budget { max: max.into(), period, offset }
        };
        let (mut scene, mut taken) = (Scene::new(), vec![(START, 1)]);
        prop_assert!(scene.take(rule(0), 1).allowed);
        let begins = |now: Micros, period: Micros, offset: Micros| now - (now - offset) % period;
        let day = |now| begins(now, long, offset);
        let mut asked = day(START);
        for (((pass, cost, odd), short), act) in steps.into_iter().zip(whose).zip(acts) {
            let pass = (part(long, pass, 1_000, 1) + u64::from(odd)).min(long - 1);
            if day(scene.wall + pass) != day(scene.wall) && asked != day(scene.wall) {
                prop_assert!(scene.take(rule(0), 0).allowed);
            }
            scene.pass(pass);
            let (now, which) = (scene.wall, usize::from(short));
            let (max, period, offset) = of(which);
            let cost = part(max, cost, 100, 1);
            if act == 0 {
                scene.judge(Act::Peek, &[charge("a", rule(which), cost)]);
                continue;
            }
            let allowed = scene.take(rule(which), cost).allowed;
            if which == 0 {
                asked = day(now);
            }
            if allowed {
                taken.push((now, cost));
                prop_assert!(cost == 0 || sum(&taken, begins(now, period, offset), now) <= max.into());
            }
        }
    }

    // Once nobody asks any more by the calendar that was there, each of the days of who asks that begin after one of that one's
    // holds no more than its maximum.
    #[test]
    fn a_budget_of_another_day_holds_no_more_than_its_maximum(
        period in 1..1_000_000_000u64, offsets in prop::array::uniform2(any::<u64>()), max in 1..1_000u64,
        steps in steps(), until in 0..30usize,
    ) {
        let [before, after] = offsets.map(|offset| offset % period);
        let rule = |offset| Rule::Budget { max: max.into(), period, offset };
        let begins = |now: Micros, offset: Micros| now - (now - offset) % period;
        let (mut scene, mut taken, mut left) = (Scene::new(), Vec::new(), 0);
        for (at, (pass, cost, odd)) in steps.into_iter().enumerate() {
            let now = scene.pass(part(period, pass, 1_000, 1) + u64::from(odd)).wall;
            let offset = if at < until { before } else { after };
            if at < until {
                left = begins(now, before) + period;
            }
            let cost = part(max, cost, 100, 1);
            if scene.take(rule(offset), cost).allowed {
                taken.push((now, cost));
                let day = begins(now, offset);
                prop_assert!(day < left && at >= until || sum(&taken, day, now) <= max.into() || cost == 0);
            }
        }
    }

    // Giving back what was reserved leaves no more room than if it had never been taken, whenever that is, whatever the
    // maximum has been meanwhile, and whether or not the limit was reset.
    #[test]
    fn what_is_given_back_makes_no_room_that_was_not_there(
        (max, period) in rates(), steps in steps(), when in 0..10usize, later in 0..40usize, reset in 0..40usize,
        shares in prop::collection::vec(prop_oneof![Just(100u64), 1..=100u64], 60),
    ) {
        for at in 0..3 {
            let kind = |max: u64| super::scene::rates(max, period)[at];
            let (mut with, mut without) = (Scene::new(), Scene::new());
            let mut pending = false;
            for (at, (&(pass, cost, odd), share)) in steps.iter().zip(&shares).enumerate() {
                let rule = kind(part(max, *share, 100, 1));
                let time = part(period, pass, 1_000, 1) + u64::from(odd);
                with.pass(time);
                without.pass(time);
                // Both count the time until now by this rule.
                let based = |scene: &mut Scene| scene.take(rule, 0).allowed;
                prop_assert!(based(&mut with) && based(&mut without));
                let reserved = [charge("a", rule, part(max, 40, 100, 1))];
                if at == when {
                    pending = with.judge(Act::Reserve { id: 1, ttl: 10 * period + SECOND, waited: None }, &reserved).allowed;
                }
                if at == reset {
                    with.judge(Act::Reset, &reserved);
                    without.judge(Act::Reset, &reserved);
                }
                if pending && at == when + later {
                    with.settle(Act::GiveBack { id: 1 }, &reserved);
                }
                let cost = part(max, cost, 200, 1);
                // What the one is allowed, the other takes too.
                if with.take(rule, cost).allowed {
                    prop_assert!(without.take(rule, cost).allowed, "{:?}", rule);
                }
            }
        }
    }

    // Of what is kept in part the rest is given back as if it had been reserved beside it.
    #[test]
    fn what_is_kept_of_one_is_what_is_committed_of_two(
        (max, period) in rates(), steps in steps(), when in 0..10usize, later in 0..40usize,
        kept in 0..=120u64, shares in prop::collection::vec(prop_oneof![Just(100u64), 1..=100u64], 60),
    ) {
        for at in 0..3 {
            let kind = |max: u64| super::scene::rates(max, period)[at];
            let (mut one, mut two) = (Scene::new(), Scene::new());
            let (all, ttl, mut pending) = (part(max, 40, 100, 1), 10 * period + SECOND, false);
            let kept = part(all, kept, 100, 1);
            let (stays, rest) = (kept.min(all), all.saturating_sub(kept));
            for (at, (&(pass, cost, odd), share)) in steps.iter().zip(&shares).enumerate() {
                let rule = kind(part(max, *share, 100, 1));
                let of = |cost| [charge("a", rule, cost)];
                let reserve = |id| Act::Reserve { id, ttl, waited: None };
                let time = part(period, pass, 1_000, 1) + u64::from(odd);
                one.pass(time);
                two.pass(time);
                if at == when {
                    pending = one.judge(reserve(1), &of(all)).allowed;
                    if pending {
                        let both = [two.judge(reserve(2), &of(stays)).allowed, two.judge(reserve(3), &of(rest)).allowed];
                        prop_assert_eq!(both, [true, true]);
                    }
                }
                if pending && at == when + later {
                    one.settle(Act::Keep { id: 1 }, &of(kept));
                    two.settle(Act::GiveBack { id: 3 }, &of(rest));
                    two.settle(Act::Commit { id: 2 }, &of(stays));
                }
                let cost = part(max, cost, 200, 1);
                prop_assert_eq!(one.take(rule, cost), two.take(rule, cost), "{:?}", rule);
            }
        }
    }

    // Given back is what was reserved less what has been refilled since, to the microsecond, whatever maxima are asked with; and
    // nothing once nothing was used.
    #[test]
    fn what_has_not_been_refilled_is_given_back(
        (max, period) in rates().prop_filter("counted without an end", |(max, period)| *max < 1 << 40 || *period > 1 << 30),
        shares in prop::collection::vec(1..=100u64, 2..4), steps in steps(),
        whose in prop::collection::vec(any::<prop::sample::Index>(), 60), acts in prop::collection::vec(0..6u8, 60),
        gcra in any::<bool>(),
    ) {
        let rules: Vec<Rule> = shares.iter().map(|share| part(max, *share, 100, 1).max(1)).map(|max| match gcra {
            true => Rule::Gcra { max, period, burst: max },
            false => Rule::Refill { max, period },
        }).collect();
        let (mut scene, mut model, mut reserved) = (Scene::new(), Changing::new(period, START), Vec::new());
        for (id, ((&(pass, cost, odd), whose), act)) in (1..).zip(steps.iter().zip(whose).zip(acts)) {
            scene.pass(part(period, pass, 1_000, 1) + u64::from(odd));
            let (now, rule, cost) = (scene.wall, *whose.get(&rules), part(max, cost, 300, 1));
            let most = rule.most().saturating_u64();
            let (empty, ttl) = (model.is_empty(now), 7 * 24 * 3600 * SECOND);
            reserved.retain(|(_, _, _, until)| !empty && *until > now);
            match act {
                0 | 1 if !reserved.is_empty() => {
                    let (id, mark, cost, _) = reserved.swap_remove(cost as usize % reserved.len());
                    scene.settle(Act::GiveBack { id }, &[charge("a", rule, cost)]);
                    model.give_back(now, most, cost, mark);
                }
                2 | 3 => {
                    let allowed = scene.judge(Act::Reserve { id, ttl, waited: None }, &[charge("a", rule, cost)]).allowed;
                    model.ask(now, most, cost, allowed);
                    reserved.extend((allowed && cost > 0).then(|| (id, model.mark(), cost, now + ttl)));
                }
                _ => {
                    let allowed = scene.take(rule, cost).allowed;
                    model.ask(now, most, cost, allowed);
                }
            }
            prop_assert_eq!(i128::from(scene.remaining(rule)), model.remaining(now, most).max(0));
        }
    }

    // A take that is made where the record stands leaves and says what a draft would: as one of a group does, whose other limit
    // allows everything. Whatever rule asks, whatever was reserved, and if the clock is set back.
    #[test]
    fn a_take_in_place_is_as_one_that_was_drafted(
        (max, period) in rates(), steps in steps(), what in prop::collection::vec(0..10u8, 60),
    ) {
        let free = charge("free", Rule::Each { max: Amount::MAX }, 0);
        let (mut alone, mut drafted) = (Scene::new(), Scene::new());
        for (&(pass, cost, odd), what) in steps.iter().zip(what) {
            let time = part(period, pass, 1_000, 1) + u64::from(odd);
            for scene in [&mut alone, &mut drafted] {
                scene.wall = if what == 9 { scene.wall.saturating_sub(time / 2) } else { scene.wall + time };
            }
            let rule = match what {
                0 => Rule::Refill { max: part(max, 60, 100, 1).max(1), period },
                1 => Rule::Refill { max, period: period + 1 },
                _ => Rule::Refill { max, period },
            };
            let act = match what {
                2 => Act::Reserve { id: 2, ttl: period, waited: None },
                3 | 4 => Act::GiveBack { id: 2 },
                _ => Act::Take,
            };
            let group = [charge("a", rule, part(max, cost, 100, 1)), free.clone()];
            let (one, other) = (alone.ask(act, &group[..1]), drafted.ask(act, &group));
            prop_assert_eq!(one, other);
            prop_assert_eq!(alone.ledger.size(), drafted.ledger.size());
        }
    }
}
