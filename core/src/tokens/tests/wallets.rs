//! What a process knows of a wallet, and that nothing of it is lost or made.

use proptest::prelude::*;
use rustc_hash::FxHashSet;

use super::scene::{MAX_AGE, Process, START, Scene, TTL, page, walk, walk_and_take};
use crate::tokens::{Amount, Bounds, Candidates, Draw, Order, Page, STRATEGIES, Token, Verdict, named};
use crate::{Micros, SECOND};

fn take(pool: &mut Candidates, order: Order, enough: u64, span: (usize, usize)) -> Vec<u64> {
    let places = pool.take(START, order, enough.into(), span, &FxHashSet::default(), &mut Draw::new(7));
    let amounts = places.iter().map(|&place| pool.amount(place).shifted(0)).collect();
    pool.put_back(START, &places);
    amounts
}

#[test]
fn orders_are_what_they_say() {
    let mut pool = Candidates::new(1, MAX_AGE);
    pool.next_page(START);
    pool.absorb(START, None, page(0..10, |id| (id * 7) % 10)).unwrap();
    assert_eq!(take(&mut pool, Order::Largest, 20, (0, 99)), [9, 8, 7]);
    assert_eq!(take(&mut pool, Order::Largest, 99, (0, 4)), [9, 8, 7, 6]);
    assert_eq!(take(&mut pool, Order::Ends, 16, (3, 99)), [9, 8, 0, 1, 2]);
    assert_eq!(take(&mut pool, Order::Around, 6, (0, 99))[..3], [6, 5, 1], "the one, then the two");
    assert_eq!(
        take(&mut pool, Order::Around, 11, (0, 2)),
        [9, 2, 8, 7, 3],
        "the two, the largest, and 3 for 7"
    );
    let mut spread = take(&mut pool, Order::Spread, 99, (0, 99));
    spread.sort_unstable();
    assert_eq!(spread, (0..10).collect::<Vec<_>>());
    let aged = (0..5).map(|id| Token { since: 9 - id, ..Token::new(format!("o{id}"), id) });
    for token in aged {
        pool.added(START, token).unwrap();
    }
    assert_eq!(take(&mut pool, Order::Oldest, 99, (0, 99)).len(), 15);
    let mut pool = Candidates::new(1, MAX_AGE);
    for id in 0..5 {
        pool.added(START, Token { since: 9 - id, ..Token::new(format!("o{id}"), id) }).unwrap();
    }
    assert_eq!(take(&mut pool, Order::Oldest, 7, (0, 99)), [4, 3]);
}

#[test]
fn f20_the_source_tells_of_changes_and_a_gap_is_made_up_for() {
    let mut scene = Scene::of(&[("a", 5)]);
    let mut process = Process::new(1);
    let first = process.attempt(5, 0, START);
    scene.select(&mut process, first).abandon(&mut scene, &mut process);
    process.pool.set_live(START, true);
    // What is told of needs no page.
    process.pool.removed(START, "a").unwrap();
    process.pool.added(START, Token::new("b", 7u64)).unwrap();
    scene.source = [("b".to_owned(), 7u64.into())].into();
    scene.now += MAX_AGE;
    let second = process.attempt(7, 0, scene.now);
    let mut second = scene.select(&mut process, second);
    assert_eq!((second.ids(&process), scene.counts.pages), (vec!["b".to_owned()], 1));
    second.abandon(&mut scene, &mut process);
    let third = process.attempt(8, 0, scene.now);
    let verdict = scene.select(&mut process, third).verdict;
    assert_eq!((verdict, scene.counts.pages), (Some(Verdict::Insufficient { held: 7u64.into() }), 2));
    // From then on no page is needed.
    scene.now += 10 * MAX_AGE;
    let again = process.attempt(8, 0, scene.now);
    let verdict = scene.select(&mut process, again).verdict;
    assert_eq!((verdict, scene.counts.pages), (Some(Verdict::Insufficient { held: 7u64.into() }), 2));
    let old = process.attempt(7, 0, scene.now);
    let mut old = scene.select(&mut process, old);
    assert_eq!((old.ids(&process), scene.counts.pages), (vec!["b".to_owned()], 2), "however old it is");
    old.abandon(&mut scene, &mut process);
    // Cut off, it misses an addition: everything is looked at once more.
    process.pool.set_live(scene.now, false);
    scene.source.insert("c".into(), 1u64.into());
    let fourth = process.attempt(8, 0, scene.now);
    assert!(matches!(scene.select(&mut process, fourth).verdict, Some(Verdict::Selected { .. })));
    assert_eq!(scene.counts.pages, 3);
    assert_eq!(process.pool.total().exact(), Some(8u64.into()), "equal to the source");
}

#[test]
fn f15_a_spent_token_is_not_offered_while_the_source_lists_it_still() {
    let mut scene = Scene::of(&[("a", 5), ("b", 5)]);
    let mut process = Process::new(1);
    let first = process.attempt(5, 0, START);
    let first = scene.select(&mut process, first);
    for &place in first.selector.held() {
        process.pool.spent(place, START + 60 * SECOND);
    }
    let second = process.attempt(10, 0, scene.now + 1);
    scene.now += 1;
    assert_eq!(scene.select(&mut process, second).verdict, Some(Verdict::Insufficient { held: 5u64.into() }));
    // It was not spent after all.
    scene.now += 61 * SECOND;
    let third = process.attempt(10, 0, scene.now);
    assert!(matches!(scene.select(&mut process, third).verdict, Some(Verdict::Selected { .. })));
}

#[test]
fn a_walk_through_all_pages_forgets_what_is_not_listed() {
    let mut pool = Candidates::new(1, MAX_AGE);
    for round in 0..3u64 {
        let now = START + round;
        assert_eq!(pool.next_page(now), None);
        let (first, last) = (round * 5, round * 5 + 20);
        let half = Page { next: Some("more".into()), ..page(first..first + 10, |_| 1) };
        pool.absorb(now, None, half).unwrap();
        assert_eq!(pool.next_page(now).as_deref(), Some("more"));
        assert!(!pool.knows_all(now));
        pool.absorb(now, Some("more"), page(first + 10..last, |_| 1)).unwrap();
        assert!(pool.knows_all(now));
        assert_eq!((pool.len(), pool.total().exact()), (20, Some(20u64.into())), "{round}");
        assert_eq!(pool.free(now), pool.total());
    }
}

#[test]
fn odd_ids_and_another_worth_under_the_same_id() {
    let mut pool = Candidates::new(1, MAX_AGE);
    for id in ["", "a.b", "é", "{}", "~"] {
        pool.added(START, Token::new(id, 1u64)).unwrap();
        pool.added(START, Token::new(id, 1u64)).unwrap();
    }
    assert_eq!((pool.len(), pool.total().exact()), (5, Some(5u64.into())));
    pool.added(START, Token::new("", 3u64)).unwrap();
    assert_eq!((pool.len(), pool.total().exact()), (5, Some(7u64.into())));
    assert!(pool.added(START, Token::new("x".repeat(257), 1u64)).is_err());
    let mut places =
        pool.take(START, Order::Spread, Amount::MAX, (0, 99), &FxHashSet::default(), &mut Draw::new(1));
    assert_eq!(places.len(), 5);
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 5);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    /// Whatever the wallet holds besides, and however few tokens it may take.
    #[test]
    fn best_fit_takes_the_fewest_and_none_that_a_smaller_one_could_stand_for(
        amounts in prop::collection::vec(prop_oneof![1u64..60, 1u64..2_000], 1..60),
        share in 1u64..=1_000,
        spare in 0usize..3,
        seed in any::<u64>(),
    ) {
        let mut scene = Scene::of(&[]);
        scene.source = amounts.iter().enumerate().map(|(at, amount)| (at.to_string(), (*amount).into())).collect();
        let target = (amounts.iter().sum::<u64>() * share / 1_000).max(1);
        let mut left = amounts.clone();
        left.sort_unstable_by(|one, other| other.cmp(one));
        let mut sum = 0;
        let fewest = 1 + left.iter().position(|amount| { sum += amount; sum >= target }).unwrap();
        let mut process = Process::new(seed);
        let bounds = Bounds { inputs: fewest + spare, ..Bounds::default() };
        let attempt = process.attempt_by(target.into(), named("best_fit").unwrap(), bounds, 0, START);
        let attempt = scene.select(&mut process, attempt);
        let chosen: Vec<u64> = attempt.ids(&process).iter().map(|id| amounts[id.parse::<usize>().unwrap()]).collect();
        let change = chosen.iter().sum::<u64>() - target;
        prop_assert_eq!(chosen.len(), fewest);
        for amount in &chosen {
            left.remove(left.iter().position(|other| other == amount).unwrap());
        }
        for amount in &chosen {
            let smaller = left.iter().find(|other| **other < *amount && amount - **other <= change);
            prop_assert_eq!(smaller, None, "for {} of {:?}, {} too much", amount, chosen, change);
        }
    }

    /// Whatever is selected, given back, spent and added: remaining and spent is what was issued, and sums and change are
    /// what the tokens say.
    #[test]
    fn i4_nothing_is_lost_or_made(
        amounts in prop::collection::vec(1u64..50, 1..40),
        asks in prop::collection::vec((1u64..120, 0..9usize, 0..3u8, 1u64..9), 1..25),
        seed in any::<u64>(),
    ) {
        let mut scene = Scene::of(&[]);
        scene.limit = 7;
        for (number, amount) in amounts.iter().enumerate() {
            scene.source.insert(format!("t{number}"), (*amount).into());
        }
        let mut issued: u64 = amounts.iter().sum();
        let mut spent = 0u64;
        let mut processes = [Process::new(seed), Process::new(!seed)];
        let mut held = Vec::new();
        for (number, (target, strategy, fate, new)) in asks.into_iter().enumerate() {
            let at = number % 2;
            let strategy = named(STRATEGIES[strategy]).unwrap();
            let attempt = processes[at].attempt_by(target.into(), strategy.clone(), Default::default(), 0, scene.now);
            let mut attempt = scene.select(&mut processes[at], attempt);
            let total: u64 = scene.source.values().map(|amount| amount.shifted(0)).sum();
            match attempt.verdict {
                Some(Verdict::Selected { sum, change }) => {
                    let ids = attempt.ids(&processes[at]);
                    let worth: Amount = ids.iter().map(|id| scene.source[id]).sum();
                    prop_assert_eq!(sum, worth);
                    prop_assert_eq!(sum.checked_sub(target.into()), Some(change));
                    if strategy.is_strict() {
                        prop_assert_eq!(change, Amount::ZERO);
                    }
                    match fate {
                        0 => attempt.abandon(&mut scene, &mut processes[at]),
                        1 => {
                            scene.source.retain(|id, _| !ids.contains(id));
                            spent += worth.shifted(0);
                            let until = scene.now + 60 * SECOND;
                            attempt.selector.held().iter().for_each(|&place| processes[at].pool.spent(place, until));
                        }
                        _ => held.push((at, attempt)),
                    }
                }
                Some(Verdict::Insufficient { held }) => {
                    prop_assert!(total < target, "{} of {}", target, total);
                    prop_assert_eq!(held, total.into());
                }
                Some(Verdict::Locked { .. } | Verdict::NoFit) => prop_assert!(total >= target),
                other => panic!("{other:?}"),
            }
            scene.source.insert(format!("n{number}"), new.into());
            issued += new;
            scene.now += SECOND;
        }
        let left: u64 = scene.source.values().map(|amount| amount.shifted(0)).sum();
        prop_assert_eq!(left + spent, issued);
        for (at, mut attempt) in held {
            attempt.abandon(&mut scene, &mut processes[at]);
        }
        scene.now += 2 * MAX_AGE;
        let all = processes[0].attempt_by(left.into(), named("fewest_inputs").unwrap(), Default::default(), 0, scene.now);
        let all = scene.select(&mut processes[0], all).verdict;
        prop_assert!(matches!(all, Some(Verdict::Selected { .. } | Verdict::Locked { .. })), "{:?}", all);
    }
}

/// A claim can be under way for so long that the token is spent meanwhile, and the lock of that spend ends.
#[test]
fn what_is_granted_late_is_had_only_while_it_is_listed() {
    let mut pool = Candidates::new(1, MAX_AGE);
    pool.next_page(START);
    pool.absorb(START, None, page(0..2, |_| 5)).unwrap();
    let ask = |pool: &mut Candidates, now| {
        pool.take(now, Order::Spread, 10u64.into(), (0, 9), &FxHashSet::default(), &mut Draw::new(7))
    };
    let places = ask(&mut pool, START);
    assert_eq!(places.len(), 2);
    for place in &places {
        assert!(pool.is_listed(*place, START + MAX_AGE));
        assert!(!pool.is_listed(*place, START + MAX_AGE + 1));
    }
    // A source that tells of every change told of this one while it was asked for.
    pool.set_live(START - MAX_AGE, true);
    pool.next_page(START);
    pool.absorb(START, None, page(0..2, |_| 5)).unwrap();
    assert!(places.iter().all(|&place| pool.is_listed(place, START + 10 * MAX_AGE)));
    pool.removed(START, "t0").unwrap();
    let listed: Vec<_> = places.iter().filter(|&&place| pool.is_listed(place, START)).collect();
    assert_eq!(listed.len(), 1);
    // It goes with who asked for it, and can come again.
    pool.put_back(START, &places);
    assert_eq!((pool.total().exact(), pool.free(START)), (Some(5u64.into()), pool.total()));
    assert_eq!(ask(&mut pool, START).len(), 1);
    pool.added(START, Token::new("t0", 5u64)).unwrap();
    assert_eq!(ask(&mut pool, START).len(), 1);
}

/// What a selection has counts as long as the source lists it, however long it is had.
#[test]
fn what_is_listed_no_more_is_no_part_of_the_total_though_a_selection_has_it() {
    // And from when on a page that lists it is believed.
    type Unlist = fn(&mut Candidates);
    let unlist: [(Unlist, u64); 2] = [
        (|pool| walk(pool, START + 1, 1..3), START + 2),
        (|pool| pool.removed(START + 1, "t0").unwrap(), START + 1 + MAX_AGE),
    ];
    let spent = |pool: &mut Candidates, place| pool.spent(place, START + TTL);
    type End = dyn Fn(&mut Candidates, u32);
    let fates: [(&str, &End); 4] = [
        ("given back", &|pool, place| pool.put_back(START + 2, &[place])),
        ("another's", &|pool, place| pool.missed(START + 2, place)),
        ("not there", &|pool, place| pool.gone(START + 2, place)),
        ("spent", &spent),
    ];
    for (unlist, believed) in unlist {
        for (fate, end) in fates {
            for twice in [false, true] {
                let mut pool = Candidates::new(1, MAX_AGE);
                walk(&mut pool, START, 0..3);
                let all = pool.take(
                    START,
                    Order::Spread,
                    15u64.into(),
                    (0, 9),
                    &FxHashSet::default(),
                    &mut Draw::new(7),
                );
                let place = *all.iter().find(|&&place| &*pool.get(place).unwrap().0.id == "t0").unwrap();
                assert_eq!(pool.total().exact(), Some(15u64.into()));
                unlist(&mut pool);
                if twice {
                    unlist(&mut pool);
                }
                assert_eq!(pool.total().exact(), Some(10u64.into()), "{fate}");
                assert!(!pool.is_listed(place, START + 1), "{fate}");
                end(&mut pool, place);
                assert_eq!(pool.total().exact(), Some(10u64.into()), "{fate}");
                // It is had by nobody, and offered to nobody.
                pool.rouse(START + SECOND, &FxHashSet::default());
                assert_eq!(pool.free(START + SECOND).exact(), Some(Amount::ZERO), "{fate}");
                // Listed again, it is there again, unless it is known to be spent.
                let until = match fate {
                    "spent" => believed.max(START + TTL),
                    "not there" => START + 2 + MAX_AGE,
                    _ => believed,
                };
                for (at, counts) in [(until - 1, false), (until, true)] {
                    if at < START + 2 {
                        continue;
                    }
                    walk(&mut pool, at, 0..3);
                    let (total, free) = if counts { (15u64, 5u64) } else { (10, 0) };
                    assert_eq!(pool.total().exact(), Some(total.into()), "{fate}");
                    assert_eq!(pool.free(at).exact(), Some(free.into()), "{fate}");
                }
            }
        }
        // Or while the selection has it.
        let mut pool = Candidates::new(1, MAX_AGE);
        walk(&mut pool, START, 0..3);
        let all =
            pool.take(START, Order::Spread, 15u64.into(), (0, 9), &FxHashSet::default(), &mut Draw::new(7));
        unlist(&mut pool);
        walk(&mut pool, believed, 0..3);
        assert_eq!(pool.total().exact(), Some(15u64.into()));
        pool.put_back(believed, &all);
        assert_eq!((pool.free(believed), pool.len()), (pool.total(), 3));
    }
}

/// A source says that tokens are spent before any page, while pages are under way and while selections have them; pages
/// of a replica that lags behind list them still.
#[test]
fn what_the_source_said_is_spent_no_late_page_brings_back() {
    type Say = fn(&mut Candidates);
    let walked: Say = |pool| {
        pool.next_page(START);
        pool.absorb(START, None, page(0..3, |_| 5)).unwrap();
    };
    let taken: Say = |pool| {
        walk_and_take(pool);
        pool.removed(START, "t0").unwrap();
        // Its holder gives it back: it is nobody's, and not there.
        let places: Vec<u32> = (0..3).collect();
        pool.put_back(START, &places);
    };
    let missed: Say = |pool| {
        walk_and_take(pool);
        pool.removed(START, "t0").unwrap();
        (0..3).for_each(|place| pool.missed(START, place));
        pool.rouse(START, &FxHashSet::default());
    };
    let cases: [(&str, Vec<Say>); 6] = [
        ("before the first look", vec![]),
        ("twice", vec![|pool| pool.removed(START - 1, "t0").unwrap()]),
        ("listed", vec![walked]),
        ("had and given back", vec![taken]),
        ("had and another's", vec![missed]),
        (
            "spent by ourselves",
            vec![walk_and_take, |pool| pool.spent(pool.place("t0").unwrap(), START + 1), |pool| {
                pool.put_back(START, &[0, 1, 2])
            }],
        ),
    ];
    for (case, before) in cases {
        let mut pool = Candidates::new(1, MAX_AGE);
        before.into_iter().for_each(|say| say(&mut pool));
        pool.removed(START, "t0").unwrap();
        for (at, sum) in [(START + 1, 10u64), (START + MAX_AGE - 1, 10), (START + MAX_AGE, 15)] {
            pool.next_page(at);
            pool.absorb(at, None, page(0..3, |_| 5)).unwrap();
            let known = (pool.total().exact(), pool.free(at).exact());
            assert_eq!(known, (Some(sum.into()), Some(sum.into())), "{case}, at {}", at - START);
        }
    }
}

#[test]
fn what_the_source_adds_again_is_there_again_but_nothing_that_was_spent_here() {
    let mut pool = Candidates::new(1, MAX_AGE);
    walk_and_take(&mut pool);
    pool.spent(0, START + MAX_AGE);
    pool.put_back(START, &[1, 2]);
    let ids: Vec<String> = (0..3).map(|place| pool.get(place).unwrap().0.id.to_string()).collect();
    pool.removed(START, &ids[1]).unwrap();
    for id in &ids[..2] {
        pool.added(START + 1, Token::new(id.as_str(), 5u64)).unwrap();
    }
    assert_eq!(
        pool.free(START + 1).exact(),
        Some(10u64.into()),
        "one was spent here, and that is told of late"
    );
    // Another worth than before, which nobody had seen.
    pool.removed(START, "new").unwrap();
    pool.added(START + 1, Token::new("new", 7u64)).unwrap();
    assert_eq!(
        (pool.free(START + 1).exact(), pool.total().exact()),
        (Some(17u64.into()), Some(17u64.into()))
    );
}

/// Whoever hears of a token and asks at once must not be told by a replica that lags behind that there is none.
#[test]
fn what_the_source_told_of_no_late_walk_takes_away() {
    let mut pool = Candidates::new(1, MAX_AGE);
    pool.added(START, Token::new("told", 5u64)).unwrap();
    let walk = |pool: &mut Candidates, now, page| {
        pool.next_page(now);
        pool.absorb(now, None, page).unwrap();
        pool.total().exact()
    };
    assert_eq!(walk(&mut pool, START + 1, page(0..2, |_| 1)), Some(7u64.into()));
    assert_eq!(walk(&mut pool, START + MAX_AGE, page(0..2, |_| 1)), Some(7u64.into()));
    assert_eq!(
        walk(&mut pool, START + MAX_AGE + 1, page(0..2, |_| 1)),
        Some(2u64.into()),
        "it is offered no longer"
    );
    // Also after a page that has listed it: of two replicas one may be late.
    pool.added(START, Token::new("t5", 5u64)).unwrap();
    assert_eq!(walk(&mut pool, START + 1, page(5..6, |_| 5)), Some(5u64.into()));
    assert_eq!(walk(&mut pool, START + MAX_AGE, page(0..2, |_| 1)), Some(7u64.into()));
    assert_eq!(walk(&mut pool, START + MAX_AGE + 1, page(0..2, |_| 1)), Some(2u64.into()));
    // What became of it may have been told while nobody heard.
    for live in [true, false] {
        pool.added(START, Token::new("told", 5u64)).unwrap();
        pool.set_live(START, live);
        assert_eq!(walk(&mut pool, START + 1, page(0..2, |_| 1)), Some(2u64.into()));
    }
}

// The page that might have listed it was late, and the last page came when no page was so late any more: with the others that were
// not listed it was forgotten, and where the source tells of every change for good.
#[test]
fn what_the_source_told_of_no_walk_takes_away_however_long_it_goes_on() {
    for live in [false, true] {
        let mut pool = Candidates::new(1, MAX_AGE);
        if live {
            pool.set_live(START - MAX_AGE, true);
        }
        pool.added(START, Token::new("told", 5u64)).unwrap();
        let mut walk = |began: Micros, ended: Micros| {
            pool.next_page(began);
            pool.absorb(began, None, Page { next: Some("more".into()), ..page(0..1, |_| 1) }).unwrap();
            pool.next_page(ended);
            pool.absorb(ended, Some("more"), page(1..2, |_| 1)).unwrap();
            pool.total().exact()
        };
        assert_eq!(walk(START + 1, START + 2 * MAX_AGE), Some(7u64.into()), "{live}");
        assert_eq!(walk(START + MAX_AGE, START + 9 * MAX_AGE), Some(7u64.into()), "{live}");
        assert_eq!(walk(START + MAX_AGE + 1, START + 9 * MAX_AGE), Some(2u64.into()), "{live}");
    }
}

/// Also where changes are told of for ever, and no walk sweeps up; whether what is taken is the next of the queue, or not,
/// or nothing is.
#[test]
fn what_is_spent_is_not_remembered_for_ever() {
    for order in [Some(Order::Spread), Some(Order::Largest), None] {
        let mut pool = Candidates::new(1, MAX_AGE);
        pool.set_live(START, true);
        for number in 0..10_000u64 {
            let now = START + number * SECOND;
            pool.added(now, Token::new(format!("t{number}"), 5u64)).unwrap();
            if let Some(order) = order {
                let none = FxHashSet::default();
                let places = pool.take(now, order, 5u64.into(), (0, 9), &none, &mut Draw::new(7));
                assert_eq!(places.len(), 1);
                match number % 4 {
                    0 => pool.spent(places[0], now + MAX_AGE),
                    1 => pool.gone(now, places[0]),
                    2 => pool.put_back(now, &places),
                    _ => {
                        pool.removed(now, &format!("t{number}")).unwrap();
                        pool.spent(places[0], now + MAX_AGE);
                    }
                }
            }
            pool.removed(now, &format!("t{number}")).unwrap();
            pool.removed(now, &format!("of another currency {number}")).unwrap();
            let (known, kept) = (pool.len(), pool.kept());
            assert!(known <= 2 * 31 && kept <= 4 * 62, "{order:?}, {number}: {known}, {kept}");
        }
        assert!(pool.removed(START, &"x".repeat(10_000)).is_err());
    }
}

// What it listed before a gap counted as told of as soon as it listened again, and was offered for ever.
#[test]
fn what_was_seen_before_the_source_listened_is_offered_no_longer_than_else() {
    let mut scene = Scene::of(&[("x", 5)]);
    let mut process = Process::new(1);
    let first = process.attempt(5, 0, START);
    scene.select(&mut process, first).abandon(&mut scene, &mut process);
    process.pool.set_live(scene.now, false);
    // Of this nobody told, nor of what came.
    scene.source = [("y".to_owned(), 3u64.into())].into();
    scene.now += SECOND;
    process.pool.set_live(scene.now, true);
    let second = process.attempt(3, 0, scene.now + 2 * MAX_AGE);
    scene.now += 2 * MAX_AGE;
    let mut second = scene.select(&mut process, second);
    assert_eq!(second.ids(&process), ["y"]);
    second.abandon(&mut scene, &mut process);
    // What a walk found since then needs no other.
    scene.now += 10 * MAX_AGE;
    let pages = scene.counts.pages;
    let third = process.attempt(3, 0, scene.now);
    assert_eq!((scene.select(&mut process, third).ids(&process).len(), scene.counts.pages), (1, pages));
}

// Of what had changed before, a replica that lags behind tells only later, and no stream any more: it was believed for ever.
#[test]
fn a_walk_that_may_be_late_for_what_came_before_the_source_listened_is_not_the_last() {
    let mut scene = Scene::of(&[("spent before", 5)]);
    let mut process = Process::new(1);
    process.pool.set_live(START, true);
    let mut select = |scene: &mut Scene, target: u64| {
        let attempt = process.attempt(target, 0, scene.now);
        let mut attempt = scene.select(&mut process, attempt);
        attempt.abandon(scene, &mut process);
        (attempt.verdict, scene.counts.pages)
    };
    let whole = Some(Verdict::Selected { sum: 5u64.into(), change: Amount::ZERO });
    let held = |sum: u64| Some(Verdict::Insufficient { held: sum.into() });
    assert_eq!(select(&mut scene, 5), (whole, 1));
    scene.source = [("added before".to_owned(), 4u64.into())].into();
    scene.now = START + MAX_AGE - 1;
    assert_eq!(select(&mut scene, 5), (whole, 1), "it is as old as it may be");
    assert_eq!(select(&mut scene, 6), (held(4), 2));
    // This walk began as late as any replica may be, and is the last.
    scene.now = START + MAX_AGE;
    assert_eq!(select(&mut scene, 6), (held(4), 3));
    scene.source.clear();
    scene.now = START + 10 * MAX_AGE;
    assert_eq!(select(&mut scene, 6), (held(4), 3));
    let whole = Some(Verdict::Selected { sum: 4u64.into(), change: Amount::ZERO });
    assert_eq!(select(&mut scene, 4), (whole, 3));
}

// The source had no change to tell of, and the token was forgotten for good.
#[test]
fn what_was_not_spent_after_all_is_found_again_where_changes_are_told_of() {
    let mut scene = Scene::of(&[("a", 5)]);
    let mut process = Process::new(1);
    process.pool.set_live(START - MAX_AGE, true);
    let first = process.attempt(5, 0, START);
    let mut first = scene.select(&mut process, first);
    for &place in first.selector.held() {
        process.pool.spent(place, START + MAX_AGE);
    }
    first.abandon(&mut scene, &mut process);
    scene.now += 2 * MAX_AGE;
    let second = process.attempt(5, 0, scene.now);
    assert_eq!(scene.select(&mut process, second).ids(&process), ["a"]);
}

// What answered may not have had it yet: it was forgotten for good, though the source lists it.
#[test]
fn what_was_said_too_early_to_be_spent_is_found_again_where_changes_are_told_of() {
    let mut scene = Scene::of(&[("a", 5)]);
    let mut process = Process::new(1);
    process.pool.set_live(START - MAX_AGE, true);
    let bounds = Bounds { verify: true, ..Bounds::default() };
    let attempt = |scene: &Scene, process: &mut Process| {
        process.attempt_by(5u64.into(), named("first_fit_random").unwrap(), bounds, 0, scene.now)
    };
    let mut first = attempt(&scene, &mut process);
    // The page and the claim; then it is asked.
    for _ in 0..2 {
        first.step(&mut scene, &mut process);
    }
    let listed = std::mem::take(&mut scene.source);
    first.step(&mut scene, &mut process);
    scene.source = listed;
    let none = Some(Verdict::Insufficient { held: Amount::ZERO });
    assert_eq!((scene.select(&mut process, first).verdict, scene.locked()), (none, 0));
    scene.now += MAX_AGE;
    let second = attempt(&scene, &mut process);
    assert_eq!(scene.select(&mut process, second).ids(&process), ["a"]);
}

// Whatever was asked for later asked for the page that the source could not give.
#[test]
fn a_walk_whose_next_page_is_lost_begins_anew() {
    let mut pool = Candidates::new(1, MAX_AGE);
    pool.next_page(START);
    pool.absorb(START, None, Page { next: Some("expires".into()), ..page(0..2, |_| 1) }).unwrap();
    assert_eq!(pool.next_page(START).as_deref(), Some("expires"));
    pool.lose_page();
    assert_eq!(pool.next_page(START), None);
    pool.absorb(START, None, page(0..3, |_| 1)).unwrap();
    assert!(pool.knows_all(START));
}

// Without a deadline it went round for ever.
#[test]
fn a_walk_that_goes_in_a_circle_is_refused_however_long_it_is_and_one_that_ends_is_not() {
    let cursor = |at: usize| Some(format!("c{at}"));
    for (lead, circle) in [(0, 1), (0, 2), (1, 2), (5, 3), (40, 17), (3, 100)] {
        let mut pool = Candidates::new(1, MAX_AGE);
        let mut at = 0;
        let refused = (1..10_000).find_map(|pages| {
            let after = pool.next_page(START);
            let next = if at == lead + circle { lead + 1 } else { at + 1 };
            at = next;
            let page = Page { next: cursor(next), ..page(0..2, |_| 1) };
            pool.absorb(START, after.as_deref(), page).err().map(|error| (pages, error))
        });
        let (pages, error) = refused.expect("refused");
        assert!(pages <= 4 * (lead + circle + 1), "{lead}, {circle}: {pages}");
        assert!(error.field() == Some("next") && error.message().contains("must come to an end"), "{error}");
        // The next walk is none the worse for it.
        pool.lose_page();
        for at in 0..200 {
            let after = pool.next_page(START);
            let next = cursor(at).filter(|_| at < 199);
            pool.absorb(START, after.as_deref(), Page { next, ..page(0..2, |_| 1) }).unwrap();
        }
        assert!(pool.knows_all(START));
    }
}
