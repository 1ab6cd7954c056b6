//! What a selection says, and what it asks for before it does.

use std::collections::HashSet;
use std::sync::Arc;

use super::scene::{Counts, MAX_AGE, Process, START, Scene, TTL, race};
use crate::slots::MAX_PER_REQUEST;
use crate::tokens::{
    Amount, Bounds, Event, Exact, FewestInputs, FirstFitRandom, Page, STRATEGIES, Step, Verdict, named,
};
use crate::{MILLISECOND, SECOND};

fn selected(sum: u64, change: u64) -> Option<Verdict> {
    Some(Verdict::Selected { sum: sum.into(), change: change.into() })
}

fn of_one(count: u64) -> Scene {
    let ids: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
    Scene::of(&ids.iter().map(|id| (id.as_str(), 1)).collect::<Vec<_>>())
}

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

// What is known to be locked or spent is left alone for a while, and asked for again when nothing else is left.
#[test]
fn f7_what_is_known_to_be_locked_or_spent_is_not_asked_for() {
    let locked: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    let locked: Vec<&str> = locked.iter().map(String::as_str).collect();
    let missed = |knows: bool| {
        let mut scene = of_one(110);
        scene.lock(&locked, TTL);
        let mut process = Process::new(1);
        // One more than can be had: it asks for all.
        let first = process.attempt(61, 0, scene.now);
        assert_eq!(
            scene.select(&mut process, first).verdict,
            Some(Verdict::Locked { until: Some(START + TTL) })
        );
        if !knows {
            process = Process::new(1);
        }
        scene.counts = Counts::default();
        for _ in 0..20 {
            let next = process.attempt(60, 0, scene.now);
            let mut next = scene.select(&mut process, next);
            assert_eq!(next.verdict, selected(60, 0));
            next.abandon(&mut scene, &mut process);
            if !knows {
                process = Process::new(1);
            }
            scene.now += MILLISECOND / 4;
        }
        scene.counts.missed
    };
    assert_eq!(missed(true), 0);
    assert!(missed(false) > 20 * 20);

    // Told of spends, it asks for none of them.
    let mut scene = of_one(20);
    let mut process = Process::new(1);
    let first = process.attempt(20, 0, scene.now);
    scene.select(&mut process, first).abandon(&mut scene, &mut process);
    process.pool.set_live(scene.now, true);
    for number in 0..10 {
        process.pool.removed(scene.now, &format!("t{number}")).unwrap();
        scene.source.remove(&format!("t{number}"));
    }
    scene.counts = Counts::default();
    scene.now += SECOND;
    let next = process.attempt(10, 0, scene.now);
    assert_eq!(scene.select(&mut process, next).verdict, selected(10, 0));
    assert_eq!(scene.counts, Counts { pages: 0, claims: 1, tokens: 10, missed: 0 });
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

#[test]
fn f4_what_is_lost_on_the_way_does_not_restart_it() {
    for stolen in 0..10 {
        let mut scene = of_one(10);
        let mut process = Process::new(1);
        let mut attempt = process.attempt(9, 0, scene.now);
        // The page is there; now somebody takes one.
        attempt.step(&mut scene, &mut process);
        let id = format!("t{stolen}");
        scene.lock(&[&id], TTL);
        let attempt = scene.select(&mut process, attempt);
        assert_eq!(attempt.verdict, selected(9, 0));
        assert!(!attempt.ids(&process).contains(&id));
        assert!(scene.counts.tokens <= 11 && scene.counts.claims <= 2, "{:?}", scene.counts);
    }
}

#[test]
fn f1_f3_what_was_added_since_is_seen_before_anybody_is_told_that_it_is_missing() {
    let mut scene = Scene::of(&[]);
    let mut process = Process::new(1);
    let first = process.attempt(1, 0, scene.now);
    assert_eq!(scene.select(&mut process, first).verdict, Some(Verdict::Insufficient { held: Amount::ZERO }));
    scene.source.insert("new".into(), 5u64.into());
    let second = process.attempt(5, 0, scene.now + 1);
    scene.now += 1;
    assert_eq!(scene.select(&mut process, second).verdict, selected(5, 0));
}

// In a worker the clock stands still between events: what is spent in the meantime was counted still.
#[test]
fn f17_the_verdict_is_the_truth_also_where_the_clock_stands_still() {
    let mut scene = Scene::of(&[("a", 5), ("b", 5)]);
    let mut process = Process::new(1);
    for (change, sum) in [(None, 10u64), (Some("a"), 5), (Some("b"), 0)] {
        scene.source.retain(|id, _| Some(id.as_str()) != change);
        let next = process.attempt(11, 0, START);
        let told = scene.select(&mut process, next).verdict;
        assert_eq!((told, scene.now), (Some(Verdict::Insufficient { held: sum.into() }), START));
    }
    scene.source.insert("c".to_owned(), 11u64.into());
    let next = process.attempt(11, 0, START);
    assert_eq!(scene.select(&mut process, next).verdict, selected(11, 0));
}

#[test]
fn f2_what_another_spent_is_not_handed_out_from_what_was_known_before() {
    // The lock is gone already, and the page is old: it is listed anew first.
    let mut scene = Scene::of(&[("spent", 5), ("other", 5)]);
    let mut process = Process::new(1);
    let first = process.attempt(10, 0, scene.now);
    let mut first = scene.select(&mut process, first);
    first.abandon(&mut scene, &mut process);
    scene.source.remove("spent");
    scene.now += MAX_AGE + 1;
    let second = process.attempt(5, 0, scene.now);
    let second = scene.select(&mut process, second);
    assert_eq!((second.verdict, second.ids(&process)), (selected(5, 0), vec!["other".to_owned()]));

    // Or the source is asked, whatever the page's age.
    let mut scene = Scene::of(&[("spent", 5), ("other", 5)]);
    let mut process = Process::new(1);
    let verify = Bounds { verify: true, ..Bounds::default() };
    let fewest = Arc::new(FewestInputs);
    let first = process.attempt_by(10u64.into(), fewest.clone(), verify, 0, scene.now);
    let mut first = scene.select(&mut process, first);
    first.abandon(&mut scene, &mut process);
    scene.source.remove("spent");
    for _ in 0..10 {
        scene.now += 1;
        let next = process.attempt_by(5u64.into(), fewest.clone(), verify, 0, scene.now);
        let mut next = scene.select(&mut process, next);
        assert_eq!((next.verdict, next.ids(&process)), (selected(5, 0), vec!["other".to_owned()]));
        next.abandon(&mut scene, &mut process);
    }
    assert_eq!(scene.locked(), 0);
}

#[test]
fn f11_u1_a_queue_that_is_left_half_full_serves_the_next_without_a_page() {
    let mut scene = of_one(20);
    let mut process = Process::new(1);
    for round in 0..4 {
        let attempt = process.attempt(5, 0, scene.now);
        assert_eq!(scene.select(&mut process, attempt).verdict, selected(5, 0), "{round}");
        scene.now += 1;
    }
    assert_eq!(scene.counts, Counts { pages: 1, claims: 4, tokens: 20, missed: 0 });
    let attempt = process.attempt(1, 0, scene.now);
    // F13: what this process has itself is not missing either.
    assert_eq!(
        scene.select(&mut process, attempt).verdict,
        Some(Verdict::Locked { until: Some(START + TTL) })
    );
}

#[test]
fn f21_u2_what_this_process_has_is_never_asked_for() {
    let mut scene = of_one(10);
    let mut process = Process::new(1);
    let held = process.attempt(6, 0, scene.now);
    let mut held = scene.select(&mut process, held);
    scene.counts = Counts::default();
    scene.now += 1;
    let more = process.attempt(5, 0, scene.now);
    let more = scene.select(&mut process, more);
    assert!(matches!(more.verdict, Some(Verdict::Locked { .. })));
    assert_eq!((scene.counts.pages, scene.counts.missed, scene.locked()), (1, 0, 6));
    // What is given back is there at once.
    held.abandon(&mut scene, &mut process);
    scene.now += 1;
    let again = process.attempt(10, 0, scene.now);
    assert_eq!(scene.select(&mut process, again).verdict, selected(10, 0));
    assert_eq!(scene.counts.missed, 0);
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
fn f14_u5_who_gives_up_at_any_step_leaves_nothing_locked() {
    for steps in 0..12 {
        let mut scene = of_one(10);
        scene.lock(&["t1"], TTL);
        scene.limit = 4;
        let mut process = Process::new(1);
        let mut attempt = process.attempt(10, SECOND, scene.now);
        for _ in 0..steps {
            attempt.step(&mut scene, &mut process);
            scene.now = scene.now.max(attempt.until);
        }
        attempt.abandon(&mut scene, &mut process);
        assert_eq!(scene.locked(), 1, "after {steps} steps");
        let next = process.attempt(9, 0, scene.now);
        assert_eq!(scene.select(&mut process, next).verdict, selected(9, 0), "and what it had is free here");
    }
}

#[test]
fn f16_u13_of_two_spenders_of_4_and_two_tokens_of_3_one_wins_in_each_of_1000_runs() {
    let mut longest = 0;
    for seed in 0..1_000 {
        let mut scene = Scene::of(&[("a", 3), ("b", 3)]);
        // Each knows one of the two at first: the worst beginning.
        scene.limit = 1;
        let mut processes = [Process::new(2 * seed), Process::new(2 * seed + 1)];
        let mut attempts: Vec<_> =
            processes.iter_mut().map(|process| process.attempt(4, 2 * SECOND, START)).collect();
        for (at, id) in ["a", "b"].into_iter().enumerate() {
            let token = crate::tokens::Token::new(id, 3u64);
            processes[at].pool.added(START, token).unwrap();
        }
        let mut won_at = None;
        let mut draw = crate::tokens::Draw::new(seed);
        while attempts.iter().any(|attempt| attempt.verdict.is_none()) {
            let at = draw.below(2) as usize;
            attempts[at].step(&mut scene, &mut processes[at]);
            // U13: who waits for more holds nothing that the other may want.
            assert!(attempts[at].until <= scene.now || attempts[at].leases.is_empty(), "seed {seed}");
            let wins = attempts.iter().filter(|attempt| attempt.verdict == selected(6, 2)).count();
            assert!(wins < 2, "seed {seed}");
            if wins == 1 {
                won_at.get_or_insert(scene.now - START);
            }
            scene.now += draw.below(MILLISECOND);
        }
        let won_at = won_at.unwrap_or_else(|| panic!("seed {seed}: nobody won"));
        longest = longest.max(won_at);
        let lost = attempts.iter().filter(|attempt| matches!(attempt.verdict, Some(Verdict::Locked { .. })));
        assert_eq!(lost.count(), 1, "seed {seed}: the other is told that it is locked");
        assert_eq!(scene.locked(), 2);
    }
    assert!(longest < SECOND, "{longest} us");
}

#[test]
fn f5_f10_u11_any_number_of_processes_share_a_wallet_and_never_a_token() {
    for seed in 0..40 {
        let mut scene = of_one(30);
        let mut processes: Vec<_> = (0..6).map(|number| Process::new(seed * 10 + number)).collect();
        let mut attempts: Vec<_> =
            processes.iter_mut().map(|process| process.attempt(5, 5 * SECOND, START)).collect();
        race(&mut scene, &mut processes, &mut attempts, seed);
        let mut ids: Vec<String> = Vec::new();
        for (attempt, process) in attempts.iter().zip(&processes) {
            assert_eq!(attempt.verdict, selected(5, 0), "seed {seed}: all can have enough");
            ids.extend(attempt.ids(process));
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 30, "seed {seed}: a token is in one selection");
    }
}

// 4 processes of 8 callers each take 4,000 of 10,000 tokens and hold them.
#[test]
fn f6_f22_processes_that_hold_what_they_have_seldom_ask_for_what_others_hold() {
    for seed in 0..4 {
        let mut scene = of_one(10_000);
        scene.limit = 10_000;
        let mut draw = crate::tokens::Draw::new(seed);
        let mut processes: Vec<_> = (0..4).map(|_| Process::new(draw.bits())).collect();
        for _ in 0..25 {
            let mut attempts: Vec<_> =
                (0..32).map(|at| processes[at % 4].attempt(5, 5 * SECOND, scene.now)).collect();
            while attempts.iter().any(|attempt| attempt.verdict.is_none()) {
                let at = draw.below(32) as usize;
                attempts[at].step(&mut scene, &mut processes[at % 4]);
            }
            assert!(attempts.iter().all(|attempt| attempt.verdict == selected(5, 0)), "seed {seed}");
            scene.now += SECOND;
        }
        let counts = scene.counts;
        assert!(counts.missed * 10 < counts.tokens, "seed {seed}: {counts:?}");
    }
}

#[test]
fn u11_u12_a_token_that_was_lost_is_not_asked_for_again_in_the_same_round() {
    let mut scene = of_one(50);
    scene.lock(&["t1", "t2", "t3", "t4"], TTL);
    let mut process = Process::new(1);
    let attempt = process.attempt(46, 0, scene.now);
    assert_eq!(scene.select(&mut process, attempt).verdict, selected(46, 0));
    assert!(scene.counts.missed <= 4, "each once at most: {:?}", scene.counts);
}

// Upstream cleaned up by the transaction that made the tokens: one old lock freed a fresh one beside it.
#[test]
fn u8_the_end_of_one_lock_frees_no_other() {
    let mut scene = Scene::of(&[("tx1:0", 1), ("tx1:1", 1), ("tx2:0", 1)]);
    scene.lock(&["tx1:0"], TTL / 2);
    scene.now += TTL / 4;
    scene.lock(&["tx1:1"], TTL);
    scene.now += TTL / 2;
    let mut process = Process::new(1);
    let attempt = process.attempt(3, 0, scene.now);
    let refused = scene.select(&mut process, attempt).verdict;
    assert!(matches!(refused, Some(Verdict::Locked { .. })), "{refused:?}");
    let attempt = process.attempt(2, 0, scene.now);
    let attempt = scene.select(&mut process, attempt);
    assert_eq!(attempt.verdict, selected(2, 0));
    assert!(!attempt.ids(&process).contains(&"tx1:1".to_owned()), "it was locked half a minute ago");
}

// Upstream read all tokens of a wallet every second, and put all of them into a new order for each request.
#[test]
fn u10_u12_what_is_asked_for_grows_with_the_target_and_not_with_the_wallet() {
    let mut scene = of_one(20_000);
    let mut process = Process::new(1);
    for _ in 0..200 {
        let attempt = process.attempt(7, 0, scene.now);
        let mut attempt = scene.select(&mut process, attempt);
        assert_eq!(attempt.verdict, selected(7, 0));
        attempt.abandon(&mut scene, &mut process);
    }
    assert_eq!((scene.counts.pages, scene.counts.claims, scene.counts.tokens), (1, 200, 1_400));
    // However much is wanted, what is asked for at once has a bound: a statement's parameters have one too.
    let before = scene.counts.claims;
    let bounds = Bounds { inputs: 5_000, ..Bounds::default() };
    let attempt = process.attempt_by(5_000u64.into(), Arc::new(FirstFitRandom), bounds, 0, scene.now);
    assert_eq!(scene.select(&mut process, attempt).verdict, selected(5_000, 0));
    assert_eq!((scene.counts.claims - before, scene.counts.tokens), (5_000 / MAX_PER_REQUEST, 6_400));
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

// It looked at all pages again and again, with what it had locked, and never again at what others had had.
#[test]
fn who_waits_is_served_though_a_walk_takes_longer_than_what_is_known_lasts() {
    let mut scene = Scene::of(&[("a", 5), ("b", 5)]);
    scene.page_time = 3 * SECOND / 2;
    scene.lock(&["b"], 4 * SECOND);
    let mut process = Process::new(1);
    let attempt = process.attempt(10, TTL, scene.now);
    assert_eq!(scene.select(&mut process, attempt).verdict, selected(10, 0));
    assert!(scene.now <= START + 10 * SECOND, "{} s", (scene.now - START) / SECOND);
}

// Others were said to have what had been listed too long ago by the end of the walk.
#[test]
fn nobody_has_what_a_slow_source_listed_too_long_ago() {
    for timeout in [0, 3 * TTL] {
        let mut scene = of_one(5);
        (scene.limit, scene.page_time) = (1, MAX_AGE / 3);
        let mut process = Process::new(1);
        let attempt = process.attempt(5, timeout, scene.now);
        assert_eq!(scene.select(&mut process, attempt).verdict, Some(Verdict::TimedOut));
    }
}

#[test]
fn who_does_not_wait_does_not_look_through_pages_for_ever() {
    for timeout in [0, 3 * SECOND] {
        let mut process = Process::new(1);
        let mut attempt = process.attempt(5, timeout, START);
        let mut now = START;
        let pages = (0..1_000).find(|number| {
            if let Step::Done(verdict) = attempt.selector.poll(&mut process.pool, now) {
                assert_eq!(verdict, Verdict::TimedOut);
                return true;
            }
            let after = process.pool.next_page(now);
            let page = Page { next: Some(number.to_string()), ..Page::default() };
            process.pool.absorb(now, after.as_deref(), page).unwrap();
            attempt.selector.handle(&mut process.pool, now, Event::Fetched);
            now += SECOND;
            false
        });
        assert_eq!(pages, Some(if timeout == 0 { 60 } else { 3 }));
    }
}

// By amount or age it found nothing, and the bounds were blamed.
#[test]
fn what_a_slow_walk_listed_last_is_chosen_among_by_every_strategy() {
    for name in STRATEGIES {
        // What was listed first was listed too long ago when the last was: nobody has it, and no bound forbids it.
        for (target, told) in [(5u64, selected(5, 0)), (10, Some(Verdict::TimedOut))] {
            for timeout in [0, 10 * MAX_AGE] {
                let mut scene = Scene::of(&[("a", 5), ("b", 5)]);
                (scene.limit, scene.page_time) = (1, 7 * MAX_AGE / 10);
                let mut process = Process::new(1);
                let strategy = named(name).unwrap();
                let attempt =
                    process.attempt_by(target.into(), strategy, Bounds::default(), timeout, scene.now);
                assert_eq!(scene.select(&mut process, attempt).verdict, told, "{name}, {target}, {timeout}");
            }
        }
    }
}
