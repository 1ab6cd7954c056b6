//! Worlds from seeds; see the crate's own page. `LEASEHOLD_SEED=n` replays one and tells everything,
//! `LEASEHOLD_SEEDS=n` plays so many.

use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use leasehold_simulation::census::Census;
use leasehold_simulation::plan::Scene;
use leasehold_simulation::planted::{self, Planted};
use leasehold_simulation::run::{Run, run};
use leasehold_simulation::world::unpoisoned;

/// How many seeds are played without being told how many.
const SEEDS: u64 = 300;
/// The same of worlds in which names are locked.
const SEEDS_OF_LOCKS: u64 = 200;
/// How many seeds a planted bug may take to be found.
const PATIENCE: u64 = 120;
/// How many events are told before the one that broke a rule.
const TOLD: usize = 60;

/// What must have happened at least once, or the worlds prove nothing.
const KINDS: [&str; 47] = [
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "NOAUTH",
    "OOM",
    "READONLY",
    "acquire dropped",
    "administration",
    "blackout",
    "clock set back",
    "clock set forward",
    "command waited for a hung server",
    "connection refused",
    "crash",
    "lease broken",
    "lease kept",
    "leases",
    "leases yielded",
    "nonce read behind",
    "nonce read failed",
    "nonce signed again",
    "offers",
    "outage",
    "partition",
    "pause",
    "promotion",
    "push doubled",
    "push late",
    "push lost",
    "renewals",
    "reply lost",
    "request doubled",
    "request late",
    "request lost",
    "restart",
    "restart without data",
    "script flush",
    "slot added",
    "slot removed",
    "told of a claimant",
    "told of a loss",
    "server hung",
    "transaction doubled",
    "transaction lost",
    "transaction unanswered",
    "transactions refused",
];

/// The same of worlds in which names are locked.
const KINDS_OF_LOCKS: [&str; 15] = [
    "clock set back",
    "clock set forward",
    "crash",
    "lock claimed",
    "lock dropped",
    "lock joined",
    "lock kept",
    "lock lost",
    "lock yielded",
    "locks",
    "locks of several names",
    "offers",
    "pause",
    "promotion",
    "restart without data",
];

#[test]
fn worlds_break_no_rule() {
    play(Scene::Pools, SEEDS, &KINDS);
}

#[test]
fn worlds_of_locks_break_no_rule() {
    play(Scene::Locks, SEEDS_OF_LOCKS, &KINDS_OF_LOCKS);
}

fn play(scene: Scene, usual: u64, kinds: &[&str]) {
    let only = number("LEASEHOLD_SEED");
    let seeds = only.map_or(0..number("LEASEHOLD_SEEDS").unwrap_or(usual), |seed| seed..seed + 1);
    let (census, began) = (Census::default(), std::time::Instant::now());
    let (next, lasted, found) = (AtomicU64::new(seeds.start), AtomicU64::new(0), Mutex::new(Vec::new()));
    let count = seeds.end - seeds.start;
    in_parallel(|| {
        let census_here = Census::default();
        while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|&seed| seed < seeds.end) {
            for redis in [false, true] {
                let run = run(seed, scene, redis, None, &census_here);
                lasted.fetch_add(run.lasted, Relaxed);
                if only.is_some() || run.violation.is_some() {
                    let text = tell(seed, redis, &run, if only.is_some() { usize::MAX } else { TOLD });
                    match only {
                        Some(_) => println!("{text}"),
                        None => unpoisoned(&found).push((seed, text)),
                    }
                }
                if run.violation.is_some() && only.is_some() {
                    unpoisoned(&found).push((seed, String::from("see above")));
                }
            }
        }
        census.merge(&census_here);
    });
    let hours = lasted.load(Relaxed) as f64 / 3.6e9;
    println!(
        "{count} seeds over both stores, {hours:.1} h of virtual time in {:?}\n{census}",
        began.elapsed()
    );
    let mut found = std::mem::take(&mut *unpoisoned(&found));
    found.sort();
    let heads: String =
        found.iter().filter_map(|(_, text)| text.lines().next()).fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "{line}");
            all
        });
    assert!(found.is_empty(), "{} worlds broke a rule\n{heads}\n{}", found.len(), found[0].1);
    if count >= usual {
        let missing: Vec<_> = kinds.iter().filter(|kind| census.of(kind) == 0).collect();
        assert!(missing.is_empty(), "never happened: {missing:?}");
    }
}

#[test]
fn a_seed_gives_one_world() {
    for scene in [Scene::Pools, Scene::Locks] {
        for redis in [false, true] {
            let digest = || format!("{:?}", run(7, scene, redis, None, &Census::default()).events);
            assert!(digest() == digest(), "two worlds from one seed");
        }
    }
}

#[test]
fn planted_bugs_are_found() {
    let next = AtomicU64::new(0);
    let missed = Mutex::new(Vec::new());
    let pools = planted::OF_POOLS.map(|bug| (Scene::Pools, bug));
    let locks = planted::OF_LOCKS.map(|bug| (Scene::Locks, bug));
    let bugs = [pools.as_slice(), locks.as_slice()].concat();
    in_parallel(|| {
        while let Some(&(scene, bug)) = bugs.get(next.fetch_add(1, Relaxed) as usize) {
            match hunt(scene, bug) {
                Some(report) => println!("{report}"),
                None => unpoisoned(&missed).push(bug.name),
            }
        }
    });
    let missed = unpoisoned(&missed);
    assert!(missed.is_empty(), "not found in {PATIENCE} seeds: {missed:?}");
}

fn hunt(scene: Scene, bug: Planted) -> Option<String> {
    let (mut lasted, census) = (0, Census::default());
    for seed in 0..PATIENCE {
        let run = run(seed, scene, true, Some(bug), &census);
        if let Some(violation) = &run.violation {
            let virtual_time = (lasted + violation.at) as f64 / 1e6;
            let text = violation.text.clone();
            return Some(format!(
                "{:<50} {:>3} seeds, {virtual_time:>7.0} s: {} ({text})",
                bug.name,
                seed + 1,
                violation.rule
            ));
        }
        lasted += run.lasted;
    }
    None
}

fn in_parallel(work: impl Fn() + Sync) {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(&work);
        }
    });
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn tell(seed: u64, redis: bool, run: &Run, last: usize) -> String {
    let store = if redis { "redis" } else { "memory" };
    let mut text = match &run.violation {
        Some(violation) => format!("seed {seed} over {store}: {violation}\n"),
        None => format!("seed {seed} over {store}: no rule is broken\n"),
    };
    let _ = writeln!(text, "{:?}", run.plan);
    let end =
        run.violation.as_ref().map_or(usize::MAX, |violation| violation.event + 1).min(run.events.len());
    for event in &run.events[end.saturating_sub(last)..end] {
        let _ = writeln!(text, "{:>12.6} {:>3} {:?}", event.at as f64 / 1e6, event.process, event.what);
    }
    text
}
