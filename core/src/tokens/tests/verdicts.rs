//! What a selection says, and what it asks for before it does.

use std::collections::HashSet;
use std::sync::Arc;

use super::scene::{Counts, Process, START, Scene, TTL, of_one, race, selected};
use crate::SECOND;
use crate::tokens::{Amount, Bounds, Event, Exact, FirstFitRandom, STRATEGIES, Step, Token, Verdict, named};

/// What a selection that does not wait comes to.
fn verdict(scene: &mut Scene, target: u64) -> Option<Verdict> {
    let mut process = Process::new(1);
    let attempt = process.attempt(target, 0, scene.now);
    scene.select(&mut process, attempt).verdict
}

#[test]
fn uncontended_it_is_one_page_and_one_claim_for_5_and_for_50() {
    for count in [5, 50] {
        let mut scene = of_one(300);
        assert_eq!(verdict(&mut scene, count), selected(count, 0));
        let tokens = count as usize;
        assert_eq!(scene.counts, Counts { pages: 1, claims: 1, tokens, missed: 0 });
    }
}

#[test]
fn a_target_of_nothing_selects_nothing_and_asks_nobody() {
    let mut scene = Scene::of(&[]);
    assert_eq!(verdict(&mut scene, 0), selected(0, 0));
    assert_eq!(scene.counts, Counts::default());
}

// (have, foreign-locked, ask) -> verdict and pages.
#[test]
fn f13_f17_the_verdict_is_the_truth_and_costs_one_walk() {
    let locked = Some(Verdict::Locked { until: Some(START + TTL) });
    let insufficient = |held: u64| Some(Verdict::Insufficient { held: held.into() });
    for (have, foreign, ask, expected) in [
        (0, 0, 1, insufficient(0)),
        (6, 0, 7, insufficient(6)),
        (6, 1, 50, insufficient(6)),
        (6, 6, 50, insufficient(6)),
        (6, 6, 7, insufficient(6)),
        (6, 6, 1, locked),
        (6, 1, 6, locked),
        (6, 1, 5, selected(5, 0)),
        (6, 0, 6, selected(6, 0)),
    ] {
        let mut scene = of_one(have);
        let ids: Vec<String> = (0..foreign).map(|number| format!("t{number}")).collect();
        if foreign > 0 {
            scene.lock(&ids.iter().map(String::as_str).collect::<Vec<_>>(), TTL);
        }
        assert_eq!(verdict(&mut scene, ask), expected, "{have} {foreign} {ask}");
        assert_eq!(scene.counts.pages, 1, "{have} {foreign} {ask}");
        let held = if matches!(expected, Some(Verdict::Selected { .. })) { ask } else { 0 };
        assert_eq!(u64::from(scene.locked()), foreign + held, "nothing else stays locked");
    }
}

#[test]
fn u4_what_a_peer_has_locked_is_not_missing_and_does_not_cost_a_pause_where_it_is() {
    // A wallet of 6 asked for 50 with one foreign lock: upstream 1.5 s of pauses.
    let mut scene = of_one(6);
    scene.lock(&["t3"], TTL);
    let mut process = Process::new(1);
    let attempt = process.attempt(50, 10 * SECOND, scene.now);
    let attempt = scene.select(&mut process, attempt);
    assert_eq!((attempt.verdict, scene.now), (Some(Verdict::Insufficient { held: 6u64.into() }), START));
}

// A selection that was never given back had what another process spent after the lease had ended.
#[test]
fn f17_what_a_selection_has_but_the_wallet_has_not_is_missing() {
    let mut scene = Scene::of(&[("a", 5), ("b", 3)]);
    let mut process = Process::new(1);
    let forgotten = process.attempt(8, 0, scene.now);
    assert_eq!(scene.select(&mut process, forgotten).verdict, selected(8, 0));
    scene.now += TTL + 1;
    scene.source.remove("a");
    let next = process.attempt(5, 0, scene.now);
    let held = 3u64.into();
    assert_eq!(scene.select(&mut process, next).verdict, Some(Verdict::Insufficient { held }));
}

// What it was told before is the truth still; and what it asked for is nobody's.
#[test]
fn a_claim_without_an_answer_in_time_ends_as_the_time_does() {
    for others in [false, true] {
        let mut scene = of_one(3);
        let mut process = Process::new(1);
        let mut attempt = process.attempt(3, SECOND, scene.now);
        if others {
            scene.lock(&["t1"], TTL);
            while attempt.until <= scene.now {
                attempt.step(&mut scene, &mut process);
            }
            assert!(scene.counts.missed > 0);
        }
        while !matches!(attempt.selector.poll(&mut process.pool, scene.now), Step::Claim(_)) {
            scene.now = scene.now.max(attempt.until);
            attempt.step(&mut scene, &mut process);
        }
        scene.now = START + SECOND;
        attempt.selector.handle(&mut process.pool, scene.now, Event::Unanswered);
        let verdict = attempt.selector.poll(&mut process.pool, scene.now);
        let until = Some(START + TTL);
        let told = if others { Verdict::Locked { until } } else { Verdict::TimedOut };
        assert_eq!(verdict, Step::Done(told));
        attempt.abandon(&mut scene, &mut process);
        assert_eq!(process.pool.free(scene.now + SECOND).exact(), Some(3u64.into()));
        let left = if others { 2 } else { 3 };
        let next = process.attempt(left, 0, scene.now);
        assert_eq!(scene.select(&mut process, next).verdict, selected(left, 0));
    }
}

// Wherever each process begins: where it may, where nobody else does, or all with the same.
#[test]
fn f23_affinity_changes_what_it_costs_and_nothing_else() {
    type Seed = dyn Fn(u64, u64) -> u64;
    let arrangements: [(&str, &Seed); 3] = [
        ("random", &|run, number| crate::tokens::Draw::new(run * 100 + number).bits()),
        ("perfect", &|_, number| number.wrapping_mul(u64::MAX / 6)),
        ("adversarial", &|run, _| run),
    ];
    for (affinity, seed) in arrangements {
        for run in 0..20 {
            let mut scene = of_one(30);
            let mut processes: Vec<_> = (0..6).map(|number| Process::new(seed(run, number))).collect();
            for (process, number) in processes.iter_mut().zip(1..) {
                process.holder = number << 64;
            }
            let mut attempts: Vec<_> =
                processes.iter_mut().map(|process| process.attempt(5, 5 * SECOND, START)).collect();
            race(&mut scene, &mut processes, &mut attempts, run);
            let mut ids = HashSet::new();
            for (attempt, process) in attempts.iter().zip(&processes) {
                assert_eq!(attempt.verdict, selected(5, 0), "{affinity} {run}");
                ids.extend(attempt.ids(process));
            }
            assert_eq!(ids.len(), 30, "{affinity} {run}: a token is in one selection");
            for process in &mut processes {
                let held = 30u64.into();
                let more = process.attempt(31, 0, scene.now);
                assert_eq!(
                    scene.select(process, more).verdict,
                    Some(Verdict::Insufficient { held }),
                    "{affinity}"
                );
                let one = process.attempt(1, 0, scene.now);
                let told = scene.select(process, one).verdict;
                assert!(matches!(told, Some(Verdict::Locked { until: Some(_) })), "{affinity}: {told:?}");
            }
            for (attempt, process) in attempts.iter_mut().zip(&mut processes) {
                attempt.abandon(&mut scene, process);
            }
            assert_eq!(scene.locked(), 0, "{affinity}");
        }
    }
}

#[test]
fn f18_who_waits_goes_on_when_the_locks_of_a_crash_have_ended() {
    let mut scene = of_one(4);
    scene.lock(&["t1", "t2"], TTL);
    let mut process = Process::new(1);
    let short = process.attempt(3, 5 * SECOND, scene.now);
    let short = scene.select(&mut process, short);
    assert_eq!(short.verdict, Some(Verdict::Locked { until: Some(START + TTL) }), "and says until when");
    assert!(scene.now >= START + 5 * SECOND && scene.now < START + 6 * SECOND);
    let long = process.attempt(3, 2 * TTL, scene.now);
    let long = scene.select(&mut process, long);
    assert_eq!(long.verdict, selected(3, 0));
    assert!(scene.now >= START + TTL && scene.now < START + TTL + SECOND);
}

#[test]
fn the_rounds_are_bounded() {
    let mut scene = of_one(2);
    scene.lock(&["t1"], 600 * SECOND);
    let mut process = Process::new(1);
    let bounds = Bounds { rounds: 5, ..Bounds::default() };
    let attempt = process.attempt_by(2u64.into(), Arc::new(FirstFitRandom), bounds, 600 * SECOND, scene.now);
    assert_eq!(scene.select(&mut process, attempt).verdict, Some(Verdict::Contended));
    assert!(scene.now < START + 5 * SECOND / 4);
    assert_eq!(scene.locked(), 1);
}

// Each round counted anew what it asked for again, and the sum of all was too much.
#[test]
fn the_attempts_of_a_round_are_bounded_and_not_the_rounds_by_them() {
    let bounds = |attempts| Bounds { attempts, ..Bounds::default() };
    for (attempts, timeout, told) in [
        (60, 20 * SECOND, selected(50, 0)),
        (60, 2 * SECOND, Some(Verdict::Locked { until: Some(START + 5 * SECOND) })),
        (60, 0, Some(Verdict::Locked { until: Some(START + 5 * SECOND) })),
        // However few others have, it may not ask for as many.
        (49, 20 * SECOND, Some(Verdict::NoFit)),
    ] {
        let mut scene = of_one(50);
        scene.lock(&["t7"], 5 * SECOND);
        let mut process = Process::new(1);
        let all =
            process.attempt_by(50u64.into(), Arc::new(FirstFitRandom), bounds(attempts), timeout, START);
        assert_eq!(scene.select(&mut process, all).verdict, told, "{attempts}, {timeout}");
    }
    // What others have is more than it may ask for at once: there is something to wait for.
    for (timeout, told) in [(0, false), (10 * SECOND, true)] {
        let mut scene = of_one(50);
        let ids: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
        scene.lock(&ids.iter().map(String::as_str).collect::<Vec<_>>(), 5 * SECOND);
        let mut process = Process::new(1);
        let some = process.attempt_by(12u64.into(), Arc::new(FirstFitRandom), bounds(20), timeout, START);
        let until = Some(START + 5 * SECOND);
        let told = if told { selected(12, 0) } else { Some(Verdict::Locked { until }) };
        assert_eq!(scene.select(&mut process, some).verdict, told);
    }
}

// Whoever gives back and takes again beside it used them up.
#[test]
fn a_round_whose_pause_was_cut_short_does_not_count() {
    let mut scene = Scene::of(&[("a", 2), ("b", 3)]);
    scene.lock(&["b"], TTL);
    let mut process = Process::new(1);
    let bounds = Bounds { rounds: 2, ..Bounds::default() };
    let exact = Arc::new(Exact::default());
    let mut attempt = process.attempt_by(3u64.into(), exact, bounds, TTL, START);
    attempt.calls = 50;
    let attempt = scene.select(&mut process, attempt);
    assert_eq!((attempt.verdict, attempt.calls), (Some(Verdict::Contended), 0));
}

#[test]
fn limits_of_a_call_are_told_from_an_empty_wallet() {
    let mut scene = Scene::of(&[("a", 5), ("b", 4), ("c", 3)]);
    let mut process = Process::new(1);
    let mut ask = |scene: &mut Scene, target: u64, strategy: &str, inputs, attempts| {
        let bounds = Bounds { inputs, attempts, ..Bounds::default() };
        let attempt = process.attempt_by(target.into(), named(strategy).unwrap(), bounds, 0, scene.now);
        let mut attempt = scene.select(&mut process, attempt);
        attempt.abandon(scene, &mut process);
        attempt.verdict
    };
    for strategy in
        ["first_fit_random", "fewest_inputs", "oldest_first", "random_improve", "boltzmann", "best_fit"]
    {
        assert_eq!(ask(&mut scene, 10, strategy, 2, 99), Some(Verdict::NoFit), "{strategy}");
        let two = ask(&mut scene, 9, strategy, 2, 99);
        assert_eq!(two, selected(9, 0), "{strategy}: the fewest where its own choice is too many");
        assert_eq!(ask(&mut scene, 13, strategy, 2, 99), Some(Verdict::Insufficient { held: 12u64.into() }));
    }
    assert_eq!(ask(&mut scene, 6, "exact", 9, 99), Some(Verdict::NoFit), "no change");
    assert_eq!(ask(&mut scene, 7, "exact", 9, 99), selected(7, 0));
    assert_eq!(ask(&mut scene, 1, "fewest_inputs", 9, 0), Some(Verdict::NoFit), "no attempt is left");
    assert_eq!(scene.locked(), 0);
}

// Enough was free by sum, and so it was told at once, by every strategy, that no choice kept to the bounds.
#[test]
fn who_only_has_to_wait_for_what_fits_is_not_told_that_nothing_does() {
    let wallet = || {
        let mut scene = of_one(200);
        scene.source.insert("big".to_owned(), 100u64.into());
        scene
    };
    let few = Bounds { inputs: 10, ..Bounds::default() };
    for name in STRATEGIES.into_iter().filter(|name| *name != "exact") {
        for same in [false, true] {
            for (timeout, ttl, until) in [(5 * SECOND, SECOND / 2, None), (0, TTL, Some(START + TTL))] {
                let mut scene = wallet();
                let mut process = Process::new(1);
                let mut held = None;
                if same {
                    let big =
                        process.attempt_by(100u64.into(), named("fewest_inputs").unwrap(), few, 0, START);
                    held = Some(scene.select(&mut process, big));
                } else {
                    scene.lock(&["big"], ttl);
                }
                let strategy = named(name).unwrap();
                let mut waits = process.attempt_by(90u64.into(), strategy, few, timeout, START);
                while waits.verdict.is_none() {
                    scene.now = scene.now.max(waits.until);
                    if scene.now >= START + SECOND / 2
                        && let Some(mut held) = held.take()
                    {
                        held.abandon(&mut scene, &mut process);
                    }
                    waits.step(&mut scene, &mut process);
                }
                match waits.verdict {
                    // Nothing but the one of 100 brings so much in so few.
                    Some(Verdict::Selected { sum, .. }) => assert!(until.is_none() && sum >= 100u64.into()),
                    told => {
                        assert_eq!(told, Some(Verdict::Locked { until }), "{name}, of one process: {same}")
                    }
                }
            }
        }
    }
    // What is too much for the bounds, whoever has it, no waiting mends.
    let mut scene = wallet();
    scene.lock(&["big"], TTL);
    let mut process = Process::new(1);
    let more = process.attempt_by(110u64.into(), Arc::new(FirstFitRandom), few, TTL, START);
    assert_eq!((scene.select(&mut process, more).verdict, scene.now), (Some(Verdict::NoFit), START));
}

// It held on to the small one, and was told that none fits.
#[test]
fn who_has_what_does_not_fit_the_rest_chooses_anew() {
    let two = Bounds { inputs: 2, verify: true, ..Bounds::default() };
    for timeout in [0, SECOND] {
        let mut scene = Scene::of(&[("a", 3), ("b", 5), ("c", 4)]);
        let mut process = Process::new(1);
        process.pool.added(START, crate::tokens::Token::new("gone", 6u64)).unwrap();
        let attempt = process.attempt_by(9u64.into(), Arc::new(Exact::default()), two, timeout, START);
        let attempt = scene.select(&mut process, attempt);
        assert_eq!(attempt.verdict, selected(9, 0), "{timeout}");
    }
}

// It held on to what only others' tokens would have completed, and was told that others have too much.
#[test]
fn who_does_not_wait_and_has_what_fits_nothing_chooses_anew_beside_others_too() {
    let two = Bounds { inputs: 2, ..Bounds::default() };
    for (small, others, strategy, bounds) in
        [(3, 7, "exact", Bounds::default()), (2, 8, "first_fit_random", two)]
    {
        for seed in 0..20 {
            let mut scene = Scene::of(&[("a", others), ("b", small), ("c", 6), ("d", 4)]);
            scene.lock(&["a"], TTL);
            let mut process = Process::new(seed);
            let attempt = process.attempt_by(10u64.into(), named(strategy).unwrap(), bounds, 0, START);
            let attempt = scene.select(&mut process, attempt);
            assert_eq!((attempt.verdict, scene.locked()), (selected(10, 0), 3), "{strategy}, {seed}");
        }
    }
}

// It was told to wait for the end of what it had itself, which it gave back with that word.
#[test]
fn nobody_is_told_to_wait_for_the_end_of_its_own_tokens() {
    for (timeout, rounds) in [(0, 1), (SECOND, 2)] {
        let mut scene = Scene::of(&[("a", 5), ("b", 5)]);
        scene.lock(&["b"], 10 * TTL);
        let mut process = Process::new(1);
        let mut attempt = process.attempt(10, timeout, START);
        while scene.counts.claims < rounds {
            scene.now = scene.now.max(attempt.until);
            attempt.step(&mut scene, &mut process);
        }
        assert_eq!(attempt.selector.held().len(), 1);
        scene.now = START + timeout;
        let until = Some(START + 10 * TTL);
        assert_eq!(scene.select(&mut process, attempt).verdict, Some(Verdict::Locked { until }), "{timeout}");
    }
}

#[test]
fn f12_amounts_near_the_top_are_added_exactly_or_not_at_all() {
    let mut scene = Scene::of(&[("one", 1), ("five", 5)]);
    scene.source.insert("top".into(), Amount::MAX);
    for seed in 0..20 {
        let mut process = Process::new(seed);
        let attempt =
            process.attempt_by(Amount::MAX, Arc::new(FirstFitRandom), Bounds::default(), 0, scene.now);
        let mut attempt = scene.select(&mut process, attempt);
        let whole = Verdict::Selected { sum: Amount::MAX, change: Amount::ZERO };
        assert_eq!((attempt.verdict, attempt.ids(&process)), (Some(whole), vec!["top".to_owned()]));
        attempt.abandon(&mut scene, &mut process);
        scene.now += SECOND;
    }
    // Only together they would do, and that sum cannot be said.
    let below = Amount::MAX.saturating_sub(1u64.into());
    scene.source = [("a".to_owned(), below), ("b".to_owned(), below)].into();
    let mut process = Process::new(1);
    let attempt = process.attempt_by(Amount::MAX, Arc::new(FirstFitRandom), Bounds::default(), 0, scene.now);
    assert_eq!(scene.select(&mut process, attempt).verdict, Some(Verdict::NoFit));
    assert_eq!(scene.locked(), 0);
}

#[test]
fn exact_goes_on_exactly_with_what_it_has() {
    let mut scene = Scene::of(&[("a", 7), ("b", 5), ("c", 4), ("d", 3), ("e", 2)]);
    let mut process = Process::new(1);
    let mut attempt =
        process.attempt_by(9u64.into(), Arc::new(Exact::default()), Bounds::default(), 0, scene.now);
    attempt.step(&mut scene, &mut process);
    // 7 and 2, or 5 and 4: whichever it wants, one of it is gone.
    scene.lock(&["a", "c"], TTL);
    let attempt = scene.select(&mut process, attempt);
    assert_eq!(attempt.verdict, Some(Verdict::Locked { until: Some(START + TTL) }), "5, 3 and 2 make no 9");
    let mut scene = Scene::of(&[("a", 7), ("b", 5), ("c", 4), ("d", 3), ("e", 2)]);
    let mut process = Process::new(1);
    let mut attempt =
        process.attempt_by(9u64.into(), Arc::new(Exact::default()), Bounds::default(), 0, scene.now);
    attempt.step(&mut scene, &mut process);
    scene.lock(&["a"], TTL);
    assert_eq!(scene.select(&mut process, attempt).verdict, selected(9, 0));
}

// It was handed out, and counted, as it was when it was claimed. (And what the wallet holds then.)
#[test]
fn what_is_spent_or_of_another_worth_while_the_rest_is_looked_for_is_in_no_selection() {
    type Change = fn(&mut Scene, &mut Process);
    let unlisted: Change = |scene, _| {
        scene.source.remove("a");
    };
    let spent: Change = |scene, process| {
        scene.source.remove("a");
        process.pool.removed(scene.now, "a").unwrap();
    };
    let less: Change = |scene, process| {
        scene.source.insert("a".into(), 1u64.into());
        process.pool.added(scene.now, Token::new("a", 1u64)).unwrap();
    };
    for (change, held) in [(unlisted, 6u64), (spent, 6), (less, 7)] {
        for timeout in [0, TTL] {
            let mut scene = Scene::of(&[("a", 5), ("b", 3)]);
            let mut process = Process::new(1);
            let first = process.attempt(8, 0, scene.now);
            scene.select(&mut process, first).abandon(&mut scene, &mut process);
            scene.lock(&["b"], TTL);
            let mut next = process.attempt(8, timeout, scene.now);
            while next.selector.held().is_empty() {
                next.step(&mut scene, &mut process);
            }
            change(&mut scene, &mut process);
            scene.source.insert("c".into(), 3u64.into());
            let told = scene.select(&mut process, next).verdict;
            assert_eq!(told, Some(Verdict::Insufficient { held: held.into() }));
            assert_eq!((scene.locked(), process.pool.free(scene.now).exact()), (1, Some((held - 3).into())));
        }
    }
}
