//! The machine against the script on a virtual clock, through restarts, lost memory, flushes and clock steps.

use leasehold::id::SlotId;
use leasehold::slots::{
    Answer, Choice, Claim, Envelope, LANE_GRACE, Reply, Request, SWEEP, SlotSpec, Strategy, TICKET_LIFE,
};
use leasehold::store::redis::RedisStore;
use leasehold::store::{Certainty, Store};
use leasehold::{Micros, SECOND};
use leasehold_agreement::{Scale, Script, Traffic, perform, pool_name, seeds};

/// Sends one trace and returns how many envelopes were performed.
fn trace(seed: u64, scale: Scale, envelopes: u32) -> [u64; 3] {
    let mut traffic = Traffic::new(seed, scale);
    let mut script = Script::new(1_700_000_000 * SECOND + seed * 1_234_567, scale.pools);
    script.set_wall(script.wall() + [0, SECOND / 2, 100 * SECOND][seed as usize % 3]);
    let (mut performed, mut granted) = (0, 0);
    for step in 0..envelopes {
        happen(&mut traffic, &mut script, scale);
        let pool = traffic.pool();
        let envelope = traffic.envelope(pool);
        let (theirs, ours) = script.answers(pool, &envelope);
        assert_eq!(
            theirs, ours,
            "the script's answer is on the left, the machine's on the right\nto {envelope:#?}\n\
             in pool {pool} at step {step}; again: LEASEHOLD_SEED={seed}"
        );
        if let Answer::Performed(done) = &ours {
            performed += 1;
            granted += done.replies.iter().filter(|reply| matches!(reply, Reply::Granted(_))).count() as u64;
        }
        traffic.hear(pool, &ours);
    }
    [u64::from(envelopes), performed, granted]
}

/// Lets time pass, and now and then something happen to the server.
fn happen(traffic: &mut Traffic, script: &mut Script, scale: Scale) {
    let random = traffic.random();
    let pass = match random.below(10) {
        0..3 => 0,
        3..5 => random.below(1_000),
        5..9 => random.below(2 * scale.unit),
        _ => random.below(20 * scale.unit),
    };
    script.set_wall(script.wall() + pass);
    match random.below(1_000) {
        0..12 => script.copy(),
        12..14 => script.promote(),
        14..16 => script.restart(),
        16 => script.wipe(),
        17..22 => {
            let back = random.below(100 * scale.unit);
            // A kept answer goes by the server's clock, the machine's by the pool's: they part if the clock runs
            // on for a minute unseen by the pool and is then set back. No client repeats an envelope so late.
            for pool in 0..scale.pools {
                let (theirs, ours) = script.answers(pool, &Envelope::default());
                assert_eq!(theirs, ours, "pool {pool} before the clock is set back");
            }
            script.set_wall(script.wall() - back);
        }
        22..24 => script.set_wall(script.wall() + random.below(100 * scale.unit)),
        24..32 => script.transport().redis().flush_scripts(),
        32..34 => script.flush(),
        _ => {}
    }
}

fn traces(rounds: u64, scale: Scale, envelopes: u32) {
    let begun = std::time::Instant::now();
    let mut sums = [0; 3];
    for seed in seeds(rounds) {
        let counts = trace(seed, scale, envelopes);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [sent, performed, granted] = sums;
    println!("{sent} envelopes, {performed} performed, {granted} grants, {:?}", begun.elapsed());
    assert!(performed * 2 > sent && granted * 50 > sent, "too little happened: {sums:?}");
}

#[test]
fn small_pools_agree() {
    traces(60, Scale { pools: 3, slots: 7, unit: SECOND }, 400);
}

#[test]
fn single_slots_agree() {
    traces(10, Scale { pools: 2, slots: 1, unit: SECOND }, 400);
}

/// More slots come due at once than one envelope puts back, and weights have many in each queue.
#[test]
fn large_pools_agree() {
    traces(4, Scale { pools: 1, slots: 700, unit: SECOND }, 500);
}

/// The script's tickets are gone a while after the last was given, the machine's are not; what was offered may wait longer
/// to be put back, as more is overdue than one envelope puts back.
#[test]
fn an_offer_that_is_over_is_put_back_for_who_comes_back_for_it() {
    let id = |text: &str| SlotId::new(text).expect("an id");
    let spec = |number| SlotSpec { slot: id(&format!("s{number}")), weight: 1 };
    let many = 2 * SWEEP as u32;
    let every = Choice::Any { strategy: Strategy::Random, least: many, most: many };
    let pair = |holder| {
        let choice = Choice::Named { slots: vec![id("a"), id("b")] };
        Request::Claim(Claim { wait: true, ..Claim::new(choice, holder, SECOND) })
    };
    let mut script = Script::new(1_700_000_000 * SECOND, 1);
    let mut ask = |pass, request: Request| {
        script.set_wall(script.wall() + pass);
        let envelope = Envelope { requests: vec![request], ..Envelope::default() };
        let (theirs, ours) = script.answers(0, &envelope);
        assert_eq!(theirs, ours, "to {envelope:#?}");
        let Answer::Performed(done) = ours else { panic!("stale") };
        done.replies
    };
    ask(0, Request::Define { slots: (0..many).map(spec).collect(), longest: 30 * SECOND, doubt_rest: 0 });
    ask(31 * SECOND, pair(1));
    ask(0, Request::Claim(Claim::new(every, 2, SECOND + 1)));
    ask(0, pair(3));
    // It is offered to the third now, until those leases have ended too.
    ask(SECOND, Request::Inspect { slots: vec![] });
    let replies = ask(TICKET_LIFE + LANE_GRACE, pair(3));
    assert!(matches!(replies[..], [Reply::Granted(_)]), "{replies:?}");
}

/// A server tells its start in whole seconds only. A lease given just before its restart must have ended when
/// the first one is given after it.
#[test]
fn a_server_that_started_late_in_its_second_is_quiet_for_a_whole_time_to_live() {
    for late in [0, 1, SECOND / 2, SECOND - 1] {
        for later in [0, 1, SECOND / 5, SECOND, 3 * SECOND / 2] {
            let started = 1_700_000_000 * SECOND + late;
            let mut script = Script::new(started, 1);
            script.set_wall(started + later);
            let define = Request::Define { slots: vec![], longest: 30 * SECOND, doubt_rest: 0 };
            let requests = vec![define, Request::Inspect { slots: vec![] }];
            let (theirs, ours) = script.answers(0, &Envelope { requests, ..Envelope::default() });
            assert_eq!(theirs, ours);
            let Answer::Performed(performed) = theirs else { panic!("stale") };
            let Reply::Inspected { quiet_until, .. } = performed.replies[1] else { panic!("{performed:?}") };
            let needed = started + 30 * SECOND;
            assert!((needed..=needed + SECOND).contains(&quiet_until), "{late} {later}: {quiet_until}");
        }
    }
}

/// It was served as one that never loses its memory: put back from a snapshot, it granted what was held.
#[test]
fn a_server_that_does_not_say_who_it_is_performs_nothing() {
    let transport = Script::new(1_700_000_000 * SECOND, 1).transport().clone();
    let pool = RedisStore::new(transport.clone()).pool(&pool_name("pool:0"));
    let define = Request::Define { slots: vec![], longest: SECOND, doubt_rest: 0 };
    let envelope = Envelope { requests: vec![define], ..Envelope::default() };
    transport.redis().set_config("master-replid", "untold");
    let error = perform(&pool, &envelope).expect_err("an error");
    assert_eq!(error.certainty, Certainty::Barred);
    assert!(error.cause.starts_with("NOREPLID"), "{error:?}");
    transport.redis().set_config("master-replid", "");
    assert!(matches!(perform(&pool, &envelope), Ok(Answer::Performed(_))));
}

/// Before 6.2.7 Redis asks plain commands only whether a primary may go on without its replicas: a script granted there what the
/// next primary granted too.
#[test]
fn a_primary_that_wants_replicas_and_has_none_performs_nothing() {
    let transport = Script::new(1_700_000_000 * SECOND, 1).transport().clone();
    let pool = RedisStore::new(transport.clone()).pool(&pool_name("pool:0"));
    let redis = || transport.redis();
    let slots = vec![SlotSpec { slot: SlotId::new("a").expect("an id"), weight: 1 }];
    let define = Request::Define { slots, longest: SECOND, doubt_rest: 0 };
    let envelope = Envelope { requests: vec![define], ..Envelope::default() };
    redis().set_config("min-replicas-to-write", "1");
    let error = perform(&pool, &envelope).expect_err("an error");
    assert_eq!(error.certainty, Certainty::NotPerformed);
    assert!(error.cause.starts_with("NOREPLICAS"), "{error:?}");
    redis().set_config("min-replicas-to-write", "0");
    assert!(matches!(perform(&pool, &envelope), Ok(Answer::Performed(_))));
}

/// Its pools took the time, which never goes back, for good: what came due stood among the tickets by then, and leases ended for nobody
/// though the clock was put right.
#[test]
fn a_server_whose_clock_is_a_lifetime_ahead_performs_nothing() {
    const AHEAD: Micros = 40 * 366 * 86_400 * SECOND;
    let started = 1_800_000_000 * SECOND;
    let transport = Script::new(started, 1).transport().clone();
    let pool = RedisStore::new(transport.clone()).pool(&pool_name("pool:0"));
    let slots = vec![SlotSpec { slot: SlotId::new("a").expect("an id"), weight: 1 }];
    let define = Request::Define { slots, longest: SECOND, doubt_rest: 0 };
    let envelope = Envelope { requests: vec![define], ..Envelope::default() };
    assert!(matches!(perform(&pool, &envelope), Ok(Answer::Performed(_))));
    transport.redis().set_time(started + AHEAD);
    let error = perform(&pool, &envelope).expect_err("an error");
    assert_eq!(error.certainty, Certainty::Barred);
    assert!(error.cause.starts_with("CLOCK"), "{error:?}");
    transport.redis().set_time(started + SECOND);
    let Ok(Answer::Performed(performed)) = perform(&pool, &envelope) else { panic!("it is right again") };
    assert_eq!(performed.now, started + SECOND);
}
