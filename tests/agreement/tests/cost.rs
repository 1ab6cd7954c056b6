//! What an envelope costs: one command, and work that does not grow with the pool or with foreign keys.

use leasehold::SECOND;
use leasehold::id::SlotId;
use leasehold::nonce::Outcome;
use leasehold::slots::{
    Answer, Choice, Claim, Envelope, Grant, Lane, LeaseRef, Performed, Reply, Request, SlotSpec, Strategy,
    TO_THE_END,
};
use leasehold_agreement::Script;
use leasehold_embedded::Resp;

const STRATEGIES: [Strategy; 3] = [Strategy::Random, Strategy::LeastRecent, Strategy::Weighted];

fn pool_of(slots: u32, weight: impl Fn(u32) -> u8) -> Script {
    let mut script = Script::new(SECOND, 1);
    script.set_wall(1_700_000_000 * SECOND);
    let slots = (0..slots)
        .map(|number| {
            let slot = SlotId::new(&format!("0x{number:040x}")).expect("an id");
            SlotSpec { slot, weight: weight(number) }
        })
        .collect();
    ask(&mut script, Request::Define { slots, longest: 30 * SECOND, doubt_rest: 0 });
    script
}

fn ask(script: &mut Script, request: Request) -> Performed {
    script.set_wall(script.wall() + 1);
    let seed = script.wall() as u32;
    let envelope = Envelope { seed, requests: vec![request], ..Envelope::default() };
    let (theirs, ours) = script.answers(0, &envelope);
    assert_eq!(theirs, ours);
    let Answer::Performed(performed) = theirs else { panic!("stale") };
    performed
}

fn claim(script: &mut Script, strategy: Strategy) -> Grant {
    let choice = Choice::Any { strategy, least: 1, most: 1 };
    let request = Request::Claim(Claim::new(choice, 1, 30 * SECOND));
    let Reply::Granted(mut grants) = ask(script, request).replies.remove(0) else { panic!("refused") };
    grants.remove(0)
}

fn release(script: &mut Script, grant: &Grant) {
    let lease = LeaseRef { slot: grant.slot.clone(), fence: grant.fence, place: 0 };
    let request = Request::Release { lease, outcome: Outcome::Unused, cooldown: 0 };
    assert_eq!(ask(script, request).replies, [Reply::Released]);
}

/// How many commands of the server's a claim and a release make it run.
fn calls(script: &mut Script, strategy: Strategy) -> (u64, u64) {
    let grant = claim(script, strategy);
    let claiming = script.transport().redis().last_script_calls();
    release(script, &grant);
    (claiming, script.transport().redis().last_script_calls())
}

#[test]
fn a_claim_and_a_release_are_one_command_each() {
    let mut script = pool_of(10, |_| 1);
    for strategy in STRATEGIES {
        script.transport().commands();
        let grant = claim(&mut script, strategy);
        assert_eq!(script.transport().commands(), ["EVALSHA"]);
        release(&mut script, &grant);
        assert_eq!(script.transport().commands(), ["EVALSHA"]);
    }
}

#[test]
fn work_does_not_grow_with_the_pool() {
    for strategy in STRATEGIES {
        let small = calls(&mut pool_of(10, |_| 1), strategy);
        let large = calls(&mut pool_of(10_000, |_| 1), strategy);
        println!("{strategy:?}: {small:?}");
        assert_eq!(small, large, "{strategy:?}");
        assert!(small.0 <= 16 && small.1 <= 16, "{strategy:?}: {small:?}");
    }
}

/// It looked again at all that it wants for each of them: a thief of 1,000 names in the place of another held the server up
/// for half a second.
#[test]
fn who_is_replaced_for_many_slots_looks_again_once() {
    let work = |count: u32| {
        let mut script = pool_of(count, |_| 1);
        let mut steal = |holder: u128, priority| {
            let choice = Choice::Any { strategy: Strategy::Random, least: count, most: count };
            let claim = Claim::new(choice, holder, 30 * SECOND);
            let request = Claim { wait: true, priority, steal: Some(TO_THE_END), ..claim };
            ask(&mut script, Request::Claim(request)).calls.claimed.len()
        };
        steal(1, 0);
        assert_eq!([steal(2, 1), steal(3, 2)], [count as usize; 2]);
        // Reading and writing the records of these is not what is counted.
        script.transport().redis().last_script_calls().saturating_sub(u64::from(count))
    };
    assert_eq!(work(20), work(100));
}

/// Each looked at all of its names for each of them: two of 500 each held the server up for as long as half a million looks take.
#[test]
fn who_are_first_by_turns_look_again_only_when_something_has_changed() {
    let work = |count: u32| {
        let mut script = pool_of(0, |_| 1);
        let names: Vec<SlotId> =
            (0..count).map(|number| SlotId::new(&format!("n{number:04}")).expect("an id")).collect();
        let part = |rest: usize, held: &str| {
            let all = names.iter().enumerate().filter(|(at, _)| rest == 2 || at % 2 == rest);
            let slots = all.map(|(_, name)| name.clone()).chain([SlotId::new(held).expect("an id")]);
            Choice::Named { slots: slots.collect() }
        };
        let mut claim = |holder: u128, choice: Choice, steal| {
            let claim = Claim::new(choice, holder, 30 * SECOND);
            ask(&mut script, Request::Claim(Claim { wait: true, priority: 9, steal, ..claim }));
        };
        let held = ["x", "y", "z"].map(|name| SlotId::new(name).expect("an id"));
        claim(1, Choice::Named { slots: held.to_vec() }, None);
        claim(2, part(2, "z"), None);
        claim(3, part(0, "x"), Some(TO_THE_END));
        claim(4, part(1, "y"), Some(TO_THE_END));
        ask(&mut script, Request::Withdraw { holder: 2 });
        script.transport().redis().last_script_calls()
    };
    let [few, many] = [work(20), work(200)];
    assert!(many < 12 * few, "{few} and {many}");
}

/// A weighted draw may fail and be repeated, so its cost is a matter of chance; its bound is not.
#[test]
fn weighted_work_is_bounded_whatever_the_weights() {
    for slots in [10, 10_000] {
        let mut script = pool_of(slots, |number| 1 + (number % 255) as u8);
        let (claims, releases): (Vec<_>, Vec<_>) =
            (0..200).map(|_| calls(&mut script, Strategy::Weighted)).unzip();
        let mean = claims.iter().sum::<u64>() / 200;
        println!("{slots} slots: {mean} calls a claim, at most {:?}", claims.iter().max());
        assert!(mean <= 24 && releases.iter().all(|&calls| calls <= 16), "{mean} {releases:?}");
    }
}

#[test]
fn foreign_keys_cost_nothing() {
    let mut script = pool_of(100, |_| 1);
    // The first looks for what is due, and those of the next second need not.
    claim(&mut script, Strategy::Random);
    let alone: Vec<_> = STRATEGIES.map(|strategy| calls(&mut script, strategy)).to_vec();
    for number in 0..1_000 {
        let key = format!("foreign:{number}");
        script.transport().redis().command(&[b"SET", key.as_bytes(), b"1"]);
    }
    let among: Vec<_> = STRATEGIES.map(|strategy| calls(&mut script, strategy)).to_vec();
    assert_eq!(alone, among);
}

/// The server takes long to be told how long a key lives, so that is told seldom, and yet no answer goes before its time.
#[test]
fn a_lane_lives_long_enough_for_each_answer() {
    let mut script = pool_of(1, |_| 1);
    let mut told = 0;
    let mut lives = 0;
    for sequence in 1..=200 {
        let pass = [1, 20, SECOND, 5 * SECOND][sequence as usize % 4];
        script.set_wall(script.wall() + pass);
        let lane = Some(Lane { client: 1, number: 0, sequence });
        // Who has just come knows no time yet.
        let not_after = (sequence > 2).then_some(script.wall() + 10 * SECOND);
        let envelope = Envelope { lane, not_after, requests: vec![Request::List], ..Envelope::default() };
        let (theirs, ours) = script.answers(0, &envelope);
        assert_eq!(theirs, ours);
        let key = format!("eth%3A1:{{pool%3A0}}:lane:{:032x}:0", 1);
        let left = script.transport().redis().command(&[b"PTTL", key.as_bytes()]);
        let Resp::Int(left) = left else { panic!("{left:?}") };
        let ends = script.wall() + 1_000 * left as u64;
        assert!(ends >= not_after.unwrap_or(script.wall()) + 60 * SECOND, "{left}");
        assert!(left <= 131_000, "{left}");
        if ends.abs_diff(lives) > SECOND {
            (told, lives) = (told + 1, ends);
        }
    }
    println!("told {told} times");
    assert!(told <= 200 * 6 / 4 / 60 + 3, "told {told} times");
}

#[test]
fn forgotten_scripts_cost_one_more_command_once() {
    let mut script = pool_of(10, |_| 1);
    let grant = claim(&mut script, Strategy::Random);
    script.transport().redis().flush_scripts();
    script.transport().commands();
    release(&mut script, &grant);
    assert_eq!(script.transport().commands(), ["EVALSHA", "EVAL"]);
    let grant = claim(&mut script, Strategy::Random);
    release(&mut script, &grant);
    assert_eq!(script.transport().commands(), ["EVALSHA", "EVALSHA"]);
}

#[test]
fn the_script_is_known_by_its_digest() {
    let script = pool_of(1, |_| 1);
    let digest =
        script.transport().redis().command(&[b"SCRIPT", b"LOAD", leasehold::store::redis::SCRIPT.as_bytes()]);
    let known = [b"SCRIPT".as_slice(), b"EXISTS", digest.as_bytes().expect("a digest")];
    script.transport().redis().flush_scripts();
    assert_eq!(script.transport().redis().command(&known).as_array(), Some(&[0i64.into()][..]));
    let mut script = script;
    claim(&mut script, Strategy::Random);
    assert_eq!(script.transport().redis().command(&known).as_array(), Some(&[1i64.into()][..]));
}

/// Whatever a pool's name is, all its keys have one hash tag, and no two pools share a key.
#[test]
fn a_pool_keeps_to_its_own_keys() {
    let mut script = Script::new(SECOND, 2);
    script.set_wall(1_700_000_000 * SECOND);
    let slots = vec![SlotSpec { slot: SlotId::new("a").expect("an id"), weight: 1 }];
    let requests = vec![Request::Define { slots, longest: SECOND, doubt_rest: 0 }];
    let envelope = Envelope { requests, ..Envelope::default() };
    for pool in 0..2 {
        let (theirs, ours) = script.answers(pool, &envelope);
        assert_eq!(theirs, ours);
        let Answer::Performed(performed) = theirs else { panic!("stale") };
        assert_eq!(
            performed.replies,
            [Reply::Defined { added: 1, total: 1 }],
            "the other pool is not this one"
        );
    }
    // The pool's record, its slots, the ready ones; twice.
    assert_eq!(script.transport().redis().key_count(), 6);
}
