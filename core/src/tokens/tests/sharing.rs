//! Several who select from one wallet, in one process and in many.

use super::scene::{Counts, Process, START, Scene, TTL, of_one, race, selected};
use crate::tokens::Verdict;
use crate::{MILLISECOND, SECOND};

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
