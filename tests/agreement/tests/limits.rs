//! The machine of limits against its script, on a virtual clock and on a real server.

use futures_util::FutureExt;
use leasehold::id::Name;
use leasehold::limits::{Act, Answer, Charge, Envelope, Ledger, Moment, Reply, Request, Rule, Waited};
use leasehold::slots::Lane;
use leasehold::store::redis::{RedisStore, Transport};
use leasehold::store::{Certainty, LimitStore, StoreLedger};
use leasehold::{MILLISECOND, Micros, SECOND};
use leasehold_agreement::{Charging, Dated, Embedded, Random, Real, pool_name, seeds};
use leasehold_embedded::{EmbeddedRedis, Resp};
use leasehold_servers::{RedisOptions, RedisServer};

fn perform<T: Transport>(transport: &T, scope: &str, envelope: &Envelope) -> Answer {
    let ledger = RedisStore::new(transport.clone()).ledger(&pool_name(scope));
    ledger.charge(envelope).now_or_never().expect("the transport answers at once").expect("an answer")
}

/// Equal answers, or what the first reply is that differs.
fn agree(theirs: &Answer, ours: &Answer, envelope: &Envelope, step: u32, seed: u64) {
    if let (Answer::Performed(theirs), Answer::Performed(ours)) = (theirs, ours) {
        for (at, (theirs, ours)) in theirs.replies.iter().zip(&ours.replies).enumerate() {
            let request = &envelope.requests[at];
            assert_eq!(
                theirs, ours,
                "the script's reply is on the left, the machine's on the right\n\
                 to request {at}, {request:?}\nat step {step}; again: LEASEHOLD_SEED={seed}"
            );
        }
    }
    assert_eq!(theirs, ours, "to {envelope:?} at step {step}; again: LEASEHOLD_SEED={seed}");
}

/// Envelopes that were performed, takes that were allowed, and those that were refused.
fn count(answer: &Answer, counts: &mut [u64; 3]) {
    if let Answer::Performed(performed) = answer {
        counts[0] += 1;
        for reply in &performed.replies {
            if let Reply::Judged(verdict) = reply {
                counts[if verdict.allowed { 1 } else { 2 }] += 1;
            }
        }
    }
}

/// What happened as so many seeds were played, each on a virtual clock.
fn played(count: u64, play: impl Fn(&Embedded, u64) -> [u64; 3]) -> [u64; 3] {
    let mut all = [0; 3];
    for seed in seeds(count) {
        let counts = play(&Embedded::new(EmbeddedRedis::new(1_700_000_000 * SECOND)), seed);
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    all
}

/// A real server, as long as it is kept, whose script takes its time from a word.
fn dated() -> (RedisServer, Dated) {
    let server = RedisServer::start(RedisOptions::default()).expect("started");
    let transport = Dated::new(Real::new(server.connect().expect("connected")), 0);
    (server, transport)
}

fn trace(seed: u64, unit: Micros, envelopes: u32, counts: &mut [u64; 3]) {
    let mut charging = Charging::new(seed, unit, false);
    let transport = Embedded::new(EmbeddedRedis::new(1_700_000_000 * SECOND + seed * 1_234_567));
    let mut machine = Ledger::default();
    let mut copy = (transport.redis().snapshot(), machine.clone());
    let early = seed.is_multiple_of(3);
    for step in 0..envelopes {
        let wall = transport.redis().time();
        let random = charging.random();
        let pass = match random.below(10) {
            0..3 => 0,
            3..5 => random.below(1_000),
            5..9 => random.below(unit),
            _ => random.below(10 * unit),
        };
        transport.redis().set_time(wall + pass);
        let check = |machine: &mut Ledger, envelope: &Envelope| {
            let theirs = perform(&transport, "limits", envelope);
            let incarnation = transport.redis().replication_id();
            let moment = Moment { wall: transport.redis().time(), incarnation: &incarnation };
            let ours = machine.apply(moment, envelope);
            agree(&theirs, &ours, envelope, step, seed);
            ours
        };
        match random.below(500) {
            0..4 if !early => {
                // What is gone by now is gone in both, whatever time it is later.
                check(&mut machine, &Envelope::default());
                let back = random.below(20 * unit);
                let now = transport.redis().time();
                transport.redis().set_time(now - back);
            }
            4 => {
                let (now, ahead) = (transport.redis().time(), random.below(400 * 24 * 3_600 * SECOND));
                transport.redis().set_time(now + ahead);
            }
            5..12 => transport.redis().flush_scripts(),
            _ => {}
        }
        // What ended a millisecond early on Redis 8 was missed to the end of that.
        if early {
            transport.redis().sweep_early();
        }
        // What it has written it may forget.
        match charging.random().below(100) {
            0..4 => copy = (transport.redis().snapshot(), machine.clone()),
            4..6 => {
                transport.redis().promote(copy.0.clone());
                machine = copy.1.clone();
            }
            6..8 => transport.redis().restart(),
            8 => {
                transport.redis().wipe();
                machine = Ledger::default();
            }
            9 => {
                transport.redis().command(&[b"FLUSHALL"]);
                machine = Ledger::default();
            }
            _ => {}
        }
        let envelope = charging.envelope(transport.redis().time());
        let answer = check(&mut machine, &envelope);
        count(&answer, counts);
        charging.hear(&envelope, &answer);
    }
}

#[test]
fn limits_agree_on_a_virtual_clock() {
    let mut counts = [0; 3];
    for seed in seeds(60) {
        trace(seed, if seed % 2 == 0 { SECOND } else { 20 * MILLISECOND }, 400, &mut counts);
    }
    println!("{counts:?} envelopes, takes that were allowed, and refused");
    assert!(counts.iter().all(|count| *count > 1_000), "too little happened: {counts:?}");
}

/// The server's time cannot be set, so the machine is told the time that the server's answer names.
#[test]
fn limits_agree_on_a_real_server() {
    let server = RedisServer::start(RedisOptions::default()).expect("started");
    let transport = Real::new(server.connect().expect("connected"));
    let told = transport.command(&["INFO", "replication"]);
    let told = told.as_text().expect("text");
    let incarnation = told.split_once("master_replid:").expect("an identity").1;
    let (mut counts, mut now) = ([0; 3], 1_700_000_000 * SECOND);
    for seed in seeds(20) {
        let mut charging = Charging::new(seed, 2 * MILLISECOND, true);
        let mut machine = Ledger::default();
        for step in 0..300 {
            match charging.random().below(300) {
                0 => drop(transport.command(&["SCRIPT", "FLUSH"])),
                1..4 => {
                    transport.command(&["FLUSHALL"]);
                    machine = Ledger::default();
                }
                4..40 => std::thread::sleep(std::time::Duration::from_micros(charging.random().below(3_000))),
                _ => {}
            }
            let envelope = charging.envelope(now);
            let theirs = perform(&transport, &format!("limits:{seed}"), &envelope);
            now = match &theirs {
                Answer::Performed(performed) => performed.now,
                Answer::Stale { now } => *now,
            };
            let ours = machine.apply(Moment { wall: now, incarnation }, &envelope);
            agree(&theirs, &ours, &envelope, step, seed);
            count(&ours, &mut counts);
            charging.hear(&envelope, &ours);
        }
    }
    println!("{counts:?} envelopes, takes that were allowed, and refused");
    assert!(counts.iter().all(|count| *count > 300), "too little happened: {counts:?}");
}

/// One rolling limit that is asked by several periods, so often that its cells are merged, and so much of it that no double
/// holds it.
fn windows<T: Transport>(transport: &T, seed: u64, set_wall: impl Fn(Micros)) -> [u64; 3] {
    let mut random = Random::new(seed);
    let (mut machine, mut counts, mut wall) = (Ledger::default(), [0; 3], 1_700_000_000 * SECOND);
    let large = seed.is_multiple_of(3);
    let mut rules: Vec<Rule> = Vec::new();
    let mut made = Vec::new();
    for step in 0..1_500 {
        if step % 500 == 0 {
            let periods =
                [SECOND, 20 * MILLISECOND, 1 + random.below(3 * SECOND), 1 + random.below(SECOND / 30)];
            let max =
                |random: &mut Random| if large { 1_000_000_000_000_000 } else { 20 + random.below(4_000) };
            let count = 2 + random.below(3) as usize;
            rules = periods
                .iter()
                .take(count)
                .map(|period| Rule::Rolling { max: max(&mut random), period: *period })
                .collect();
        }
        let pass = match random.below(200) {
            0 => random.below(3 * SECOND),
            1..4 => random.below(SECOND / 4),
            _ => random.below(MILLISECOND),
        };
        wall += pass;
        if random.once_in(300) {
            wall -= random.below(SECOND);
        }
        set_wall(wall);
        made.push(wall);
        let mut requests = Vec::new();
        for _ in 0..1 + random.below(2) {
            let rule = random.of(&rules);
            let most = if large && random.once_in(3) { 1_000_000_000_000_000 } else { 12 };
            let (limit, cost) = (Name::new("a").expect("a name"), random.below(most).into());
            // Ends of reservations that were made a while ago, or never.
            let earlier = step / (1 + random.below(4));
            // The machine has forgotten one that has ended, also if its clock is set back to before that, and a key lives by the
            // time of the server's host.
            let ends = |at: &Micros| wall.abs_diff(at + 10 * SECOND) < SECOND;
            let id = u128::from(if made.get(earlier as usize).is_some_and(ends) { step } else { earlier });
            let act = match random.below(100) {
                0..10 => Act::Reserve { id: step.into(), ttl: 10 * SECOND, waited: None },
                10..15 => Act::GiveBack { id },
                15 => Act::Renew { id, ttl: 1 },
                16..20 => Act::Refund,
                20..26 => Act::Peek,
                26 if random.once_in(6) => Act::Reset,
                _ => Act::Take,
            };
            requests.push(Request { act, charges: vec![Charge { limit, rule, cost, open: false }] });
        }
        let envelope = Envelope { requests, ..Envelope::default() };
        let theirs = perform(transport, &format!("windows:{seed}"), &envelope);
        let ours = machine.apply(Moment { wall, incarnation: "" }, &envelope);
        agree(&theirs, &ours, &envelope, step as u32, seed);
        count(&ours, &mut counts);
    }
    counts
}

#[test]
fn windows_of_several_periods_agree() {
    let all = played(6, |transport, seed| windows(transport, seed, |wall| transport.redis().set_time(wall)));
    assert!(all.iter().all(|count| *count > 500), "too little happened: {all:?}");
    let (_server, transport) = dated();
    for seed in seeds(2) {
        windows(&transport, seed, |wall| transport.set_wall(wall));
    }
}

/// Clients that wait for what is in flight, of one limit or two, some of them for a rate too; each has waited for half a second longer
/// than another.
fn waits<T: Transport>(transport: &T, seed: u64, goes_back: bool, set_wall: impl Fn(Micros)) -> [u64; 3] {
    let mut random = Random::new(seed);
    let (mut machine, mut counts, mut wall) = (Ledger::default(), [0; 3], 1_700_000_000 * SECOND);
    let mut flying: Vec<(u128, Vec<Charge>)> = Vec::new();
    for step in 0..1_500u32 {
        let pass = match random.below(20) {
            0 => random.below(SECOND),
            1..8 => random.below(SECOND / 10),
            _ => random.below(3 * MILLISECOND),
        };
        // In steps, so that times are often equal, or not.
        wall += if seed.is_multiple_of(2) { pass } else { 8 * pass / (SECOND / 20) * (SECOND / 20) };
        if goes_back && random.once_in(300) {
            // What is gone by now is gone in both.
            set_wall(wall);
            let nothing = Envelope::default();
            perform(transport, &format!("waits:{seed}"), &nothing);
            machine.apply(Moment { wall, incarnation: "" }, &nothing);
            wall -= random.below(SECOND);
        }
        set_wall(wall);
        let client = random.below(4) as usize;
        let mut requests = Vec::new();
        for _ in 0..1 + random.below(2) {
            let charge = |limit: &str, rule, cost: u64| Charge {
                limit: Name::new(limit).expect("a name"),
                rule,
                cost: cost.into(),
                open: false,
            };
            let mut charges = vec![charge("a", Rule::InFlight { max: 3 }, 1)];
            match random.below(8) {
                0 => charges.push(charge("b", Rule::InFlight { max: 2 }, 1)),
                1 => charges.insert(0, charge("b", Rule::InFlight { max: 2 }, 2)),
                2 => charges.push(charge("rate", Rule::Refill { max: 1, period: SECOND }, 1)),
                3 => charges[0].cost = random.below(5).into(),
                _ => {}
            }
            let id = u128::from(random.any());
            let half = client as u64 * (SECOND / 2);
            let waited = match random.below(8) {
                0 => None,
                1 => Some(random.below(2 * SECOND)),
                2 => Some(half + 1),
                3 => Some(half.saturating_sub(1)),
                4 => Some(half + random.below(SECOND / 4)),
                _ => Some(half),
            };
            let reply = random.of(&[0, SECOND / 3, 3 * SECOND]);
            let waited = waited.map(|time| Waited { time, reply });
            let act = match random.below(20) {
                0..9 if !flying.is_empty() => {
                    let at = random.below(flying.len() as u64) as usize;
                    let (id, reserved) = flying[at].clone();
                    charges = reserved;
                    let act = match random.below(5) {
                        0 => Act::Commit { id },
                        1 => Act::GiveBack { id },
                        2 => Act::Keep { id },
                        _ => Act::Renew { id, ttl: 1 + random.below(2 * SECOND) },
                    };
                    if !matches!(act, Act::Renew { .. }) {
                        flying.swap_remove(at);
                    }
                    act
                }
                9 => Act::Peek,
                10 if random.once_in(10) => Act::Reset,
                _ => {
                    flying.push((id, charges.clone()));
                    if flying.len() > 4 {
                        flying.remove(0);
                    }
                    Act::Reserve { id, ttl: 1 + random.below(2 * SECOND), waited }
                }
            };
            requests.push(Request { act, charges });
        }
        let lane = Lane { client: (1 + client as u128) << 100, number: 0, sequence: u64::from(step) };
        let lane = (!random.once_in(20)).then_some(lane);
        let envelope = Envelope { lane, requests, ..Envelope::default() };
        let theirs = perform(transport, &format!("waits:{seed}"), &envelope);
        let ours = machine.apply(Moment { wall, incarnation: "" }, &envelope);
        agree(&theirs, &ours, &envelope, step, seed);
        count(&ours, &mut counts);
    }
    counts
}

#[test]
fn who_waits_for_what_is_in_flight_is_kept_room_for_by_both() {
    let all =
        played(20, |transport, seed| waits(transport, seed, true, |wall| transport.redis().set_time(wall)));
    println!("{all:?} envelopes, reservations, and refusals");
    assert!(all.iter().all(|count| *count > 2_000), "too little happened: {all:?}");
    let (_server, transport) = dated();
    for seed in seeds(2) {
        waits(&transport, seed, false, |wall| transport.set_wall(wall));
    }
}

/// What a lone take costs the server: its record and its lane are read by one command, and each is written by one.
#[test]
fn a_lone_take_is_four_commands() {
    let transport = Embedded::new(EmbeddedRedis::new(1_700_000_000 * SECOND));
    let envelope = |sequence, cost: u64| {
        let rule = Rule::Refill { max: 10, period: SECOND };
        let limit = Name::new("a").expect("a name");
        let charges = vec![Charge { limit, rule, cost: cost.into(), open: false }];
        let lane = Some(Lane { client: 1, number: 0, sequence });
        Envelope { lane, requests: vec![Request { act: Act::Take, charges }], ..Envelope::default() }
    };
    for (sequence, cost, calls) in [(1, 9, 4), (2, 1, 4), (3, 1, 3), (3, 1, 2)] {
        perform(&transport, "limits", &envelope(sequence, cost));
        assert_eq!(transport.redis().last_script_calls(), calls, "{sequence}");
    }
}

/// How long a lane lives is told seldom. Where a server took over whose clock is behind, it was thought to live for longer than its key
/// does, and what was repeated after that was charged twice.
#[test]
fn an_answer_is_kept_where_the_clock_before_was_ahead() {
    let wall = 1_700_000_000 * SECOND;
    let transport = Embedded::new(EmbeddedRedis::new(wall));
    let key = format!("eth%3A1:{{limits}}:lane:{:032x}:0", 1);
    let take = |now: Micros, sequence| {
        transport.redis().set_time(now);
        let (limit, rule) =
            (Name::new("a").expect("a name"), Rule::Rolling { max: 10, period: 3_600 * SECOND });
        let charges = vec![Charge { limit, rule, cost: 1u64.into(), open: false }];
        let lane = Some(Lane { client: 1, number: 0, sequence });
        let not_after = Some(now + 10 * SECOND);
        let requests = vec![Request { act: Act::Take, charges }];
        perform(&transport, "limits", &Envelope { lane, not_after, requests, ..Envelope::default() });
        let left = transport.redis().command(&[b"PTTL", key.as_bytes()]);
        let Resp::Int(left) = left else { panic!("{left:?}") };
        left as u64 * MILLISECOND
    };
    let kept = take(wall, 1);
    assert!(kept >= 70 * SECOND, "{kept}");
    // Some minutes behind: the key's end came along as a time that was left.
    let behind = wall - 300 * SECOND;
    transport.redis().set_time(behind);
    transport.redis().command(&[b"PEXPIRE", key.as_bytes(), b"5000"]);
    let kept = take(behind + SECOND, 2);
    assert!(kept >= 70 * SECOND, "{kept}");
}

/// Before 6.2.7 Redis asks plain commands only whether a primary may go on without its replicas: money was spent there that the next
/// primary let be spent once more.
#[test]
fn a_primary_that_wants_replicas_and_has_none_spends_no_money() {
    let transport = Embedded::new(EmbeddedRedis::new(1_700_000_000 * SECOND));
    let ledger = RedisStore::new(transport.clone()).ledger(&pool_name("limits"));
    let lifetime = Rule::Lifetime { max: 10u64.into() };
    let budget = Rule::Budget { max: 10u64.into(), period: SECOND, offset: 0 };
    for (rule, act) in [lifetime, budget].into_iter().flat_map(|rule| [(rule, Act::Take), (rule, Act::Peek)])
    {
        let limit = Name::new("a").expect("a name");
        let charges = vec![Charge { limit, rule, cost: 1u64.into(), open: false }];
        let envelope = Envelope { requests: vec![Request { act, charges }], ..Envelope::default() };
        let charge = || ledger.charge(&envelope).now_or_never().expect("the transport answers at once");
        transport.redis().set_config("min-replicas-to-write", "1");
        let error = charge().expect_err("an error");
        assert_eq!(error.certainty, Certainty::NotPerformed);
        assert!(error.cause.starts_with("NOREPLICAS"), "{error:?}");
        transport.redis().set_config("min-replicas-to-write", "0");
        assert!(matches!(charge(), Ok(Answer::Performed(_))));
    }
}

/// One round trip, whatever the number of limits.
#[test]
fn a_take_is_one_call_and_leaves_nothing_behind() {
    let transport = Embedded::new(EmbeddedRedis::new(1_700_000_000 * SECOND));
    let mut charging = Charging::new(3, SECOND, false);
    for _ in 0..200 {
        let now = transport.redis().time();
        perform(&transport, "limits", &charging.envelope(now));
        let sent = transport.commands();
        assert!(sent.iter().filter(|name| *name == "EVALSHA").count() <= 2, "{sent:?}");
        assert!(sent.iter().filter(|name| *name == "EVAL").count() <= 1, "{sent:?}");
    }
    let now = transport.redis().time();
    transport.redis().set_time(now + 800 * 24 * 3_600 * SECOND);
    // What is used of lifetimes stays.
    transport.redis().command(&[b"PING"]);
    assert!(transport.redis().key_count() <= 6);
}
