//! Walks through a wallet's pages: what is looked at, how often, and what is believed for how long.

use std::sync::Arc;

use super::scene::{Counts, MAX_AGE, Process, START, Scene, TTL, of_one, page, selected, walk_and_take};
use crate::SECOND;
use crate::slots::MAX_PER_REQUEST;
use crate::tokens::{
    Amount, Bounds, Candidates, Event, FewestInputs, FirstFitRandom, Page, STRATEGIES, Step, Verdict, named,
};

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

// Each read the whole wallet anew, and who had less time than that takes was never served.
#[test]
fn whose_own_choice_is_too_many_needs_no_walk_of_its_own() {
    let few = Bounds { inputs: 10, ..Bounds::default() };
    let mut scene = of_one(200);
    scene.source.insert("big".to_owned(), 100u64.into());
    scene.page_time = 2 * SECOND;
    let mut process = Process::new(1);
    for timeout in [TTL, SECOND, 0] {
        let strategy = Arc::new(FirstFitRandom);
        let attempt = process.attempt_by(90u64.into(), strategy, few, timeout, scene.now);
        let mut attempt = scene.select(&mut process, attempt);
        attempt.abandon(&mut scene, &mut process);
        assert!(
            matches!(attempt.verdict, Some(Verdict::Selected { .. })),
            "{timeout}: {:?}",
            attempt.verdict
        );
    }
    assert_eq!(scene.counts.pages, 1);
}

// What was barred was forgotten by the clock of whoever looked meanwhile, and came again by the page, for good.
#[test]
fn a_page_that_is_late_by_when_it_was_asked_for_is_late_when_it_comes() {
    for had in [false, true] {
        let mut pool = Candidates::new(1, MAX_AGE);
        pool.set_live(START - MAX_AGE, true);
        if had {
            walk_and_take(&mut pool);
        }
        pool.removed(START, "t0").unwrap();
        let (asked, over) = (START + MAX_AGE - 1, START + MAX_AGE);
        pool.next_page(asked);
        pool.put_back(over, &[0, 1, 2]);
        pool.free(over);
        pool.absorb(asked, None, page(0..3, |_| 5)).unwrap();
        let later = START + 100 * MAX_AGE;
        assert_eq!((pool.free(later).exact(), pool.len()), (Some(10u64.into()), 2), "{had}");
    }
}

// The walk had passed it while it rested, came to its end, and was believed.
#[test]
fn what_was_not_spent_after_all_is_found_though_its_rest_ends_amid_a_walk() {
    let mut pool = Candidates::new(1, MAX_AGE);
    pool.set_live(START - MAX_AGE, true);
    walk_and_take(&mut pool);
    pool.spent(pool.place("t0").unwrap(), START + MAX_AGE);
    pool.put_back(START, &[0, 1, 2]);
    let list = |after: Option<&str>| match after {
        None => Page { next: Some("more".into()), ..page(0..1, |_| 5) },
        Some(_) => page(1..3, |_| 5),
    };
    let early = START + MAX_AGE - 1;
    pool.next_page(early);
    pool.absorb(early, None, list(None)).unwrap();
    let now = START + MAX_AGE;
    pool.free(now);
    let pages = (1..9).find(|_| {
        let after = pool.next_page(now);
        pool.absorb(now, after.as_deref(), list(after.as_deref())).unwrap();
        pool.knows_all(now)
    });
    assert_eq!((pages, pool.total().exact()), (Some(2), Some(15u64.into())));
}

// It stayed out of reach for good, though nobody had it and the source lists it: no page was asked for any more.
#[test]
fn what_a_slow_walk_listed_first_is_offered_once_the_source_tells_of_every_change() {
    for held in [false, true] {
        let mut scene = of_one(3);
        scene.limit = 1;
        let mut process = Process::new(1);
        process.pool.set_live(START - MAX_AGE, true);
        for _ in 0..3 {
            let attempt = process.attempt(1, 0, scene.now);
            let mut attempt = scene.select(&mut process, attempt);
            assert_eq!(attempt.verdict, selected(1, 0), "{held}");
            if !held {
                attempt.abandon(&mut scene, &mut process);
            }
            scene.now += MAX_AGE + 1;
            attempt.abandon(&mut scene, &mut process);
        }
        let all = process.attempt(3, 0, scene.now);
        assert_eq!(scene.select(&mut process, all).verdict, selected(3, 0), "{held}");
        assert_eq!(scene.counts.pages, 3);
    }
}
