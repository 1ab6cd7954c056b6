//! Many that contend for one prize, in many processes, some of which are killed or stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use leasehold_faults::{Contenders, Contest, Handle, Place, Prize, Said, eventually, soon, tickets};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const PROGRAM: &str = env!("CARGO_BIN_EXE_contender");

/// A file of this test's own, gone with this value.
struct Gate(PathBuf);

impl Gate {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!(
            "{}-{}",
            name.replace(':', "-"),
            std::process::id()
        ));
        File::create(&path).expect("a file");
        Gate(path)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

async fn a_burst_is_drained(prizes: &[Prize]) {
    const CALLERS: usize = 50;
    let won = prizes[0].win().await.expect("free");
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let prize = prizes[number % prizes.len()].clone();
            tokio::spawn(async move {
                let won = prize.win().await.expect("served");
                tokio::time::sleep(Duration::from_millis(5)).await;
                won.give_back().await.expect("its own");
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    won.give_back().await.expect("its own");
    for caller in callers {
        soon(Duration::from_secs(20), "the burst", caller).await.0.expect("no panic");
    }
    let took = began.elapsed();
    println!("{CALLERS} in {} processes: drained in {took:?}", prizes.len());
    // 250 ms where nothing else goes on, and no wait for a message that never comes.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

async fn nobody_starves(prizes: &[Prize]) {
    const CALLERS: usize = 50;
    let end = Instant::now() + Duration::from_secs(2);
    let callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let prize = prizes[number % prizes.len()].clone();
            tokio::spawn(async move {
                let mut count = 0;
                while Instant::now() < end {
                    prize.win().await.expect("served").give_back().await.expect("its own");
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut counts: Vec<usize> = Vec::new();
    for caller in callers {
        counts.push(soon(Duration::from_secs(20), "the loops", caller).await.0.expect("no panic"));
    }
    counts.sort_unstable();
    let mean = counts.iter().sum::<usize>() / CALLERS;
    println!(
        "{CALLERS} in {} processes: {} to {}, on average {mean}",
        prizes.len(),
        counts[0],
        counts[CALLERS - 1]
    );
    assert!(mean > 10 && counts[0] * 3 >= mean, "{counts:?}");
}

async fn crowds_are_served_fast_and_evenly(place: Place) {
    let prizes = [Prize::slot(&place.handle()).await, Prize::slot(&place.handle()).await];
    a_burst_is_drained(&prizes[..1]).await;
    a_burst_is_drained(&prizes).await;
    nobody_starves(&prizes[..1]).await;
    nobody_starves(&prizes).await;
}

on_both!(crowds_are_served_fast_and_evenly);

/// Ten processes of twenty callers each, half of which are killed: three while they hold the prize, two at any moment.
async fn the_killed_take_nobody_with_them(place: &Place, prize: &str) {
    const PROCESSES: usize = 10;
    const CALLERS: u32 = 20;
    // Whoever is there for the so many-th time is killed then.
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").subsec_nanos();
    let mut doomed = BTreeMap::from([(0, 1 + seed % 3), (1, 1 + seed / 3 % 7), (2, 1 + seed / 21 % 12)]);
    let moments = [seed / 7 % 1_500, seed / 77 % 1_500].map(u64::from).map(Duration::from_millis);
    println!("seed {seed}: killed are {doomed:?}, and two after {moments:?}");

    let gate = Gate::new(&format!("gate-of-{prize}"));
    let contest = Contest { program: PROGRAM, url: place.url(), prize, gate: &gate.0, hold: 20 };
    let (told, mut hears) = unbounded_channel();
    let mut processes: Vec<_> =
        (0..PROCESSES).map(|process| Contenders::start(&contest, process, CALLERS, told.clone())).collect();
    let began = Instant::now();
    let mut pending = BTreeMap::from([(3, moments[0]), (4, moments[1])]);
    let (mut served, mut fences) = (vec![0; PROCESSES], BTreeSet::new());
    let mut last_killed = began;
    let survivors = |served: &[u32]| served[5..].iter().sum::<u32>();
    while survivors(&served) < CALLERS * (PROCESSES as u32 - 5) {
        assert!(began.elapsed() < Duration::from_secs(60), "{served:?}");
        for (process, _) in pending.extract_if(.., |_, moment| began.elapsed() >= *moment) {
            processes[process].kill();
            last_killed = Instant::now();
        }
        let Ok(said) = tokio::time::timeout(Duration::from_millis(10), hears.recv()).await else { continue };
        let Said { process, what, of } = said.expect("this test tells, too");
        match what.as_str() {
            "inside" => {
                assert!(fences.insert(of), "a fence was given twice");
                if let Some(turns) = doomed.get_mut(&process) {
                    *turns -= 1;
                    if *turns == 0 {
                        processes[process].kill();
                        last_killed = Instant::now();
                        doomed.remove(&process);
                    }
                }
            }
            "served" => served[process] += 1,
            "ended" => {}
            _ => panic!("{process}: {what} {of}"),
        }
    }
    let took = last_killed.elapsed();
    println!("{prize}: {served:?} served in {:?}, {took:?} after the last was killed", began.elapsed());
    // What the dead hold ends after two seconds, and their tickets lapse after ten.
    assert!(took < Duration::from_secs(30), "{took:?}");
    for process in processes.iter_mut().take(5) {
        process.kill();
    }
    let handle = place.handle();
    let other = Prize::of(prize, &handle).await;
    soon(Duration::from_secs(15), "whoever comes later", other.win()).await.0.expect("served");
}

/// The next thing that a process says.
async fn next(hears: &mut UnboundedReceiver<Said>) -> (String, u64) {
    let said = soon(Duration::from_secs(10), "a word", hears.recv()).await.0.expect("told");
    (said.what, said.of.parse().expect("a fence"))
}

fn signal(process: &Contenders, signal: i32) {
    // SAFETY: it sends a signal to a child of ours that has not been reaped.
    #[allow(unsafe_code, reason = "the standard library sends no signals")]
    let sent = unsafe { libc::kill(process.id(), signal) };
    assert_eq!(sent, 0);
}

/// One that is stopped as it is called is passed over, and served later.
async fn the_stopped_are_passed_over(place: &Place, word: &str) {
    let gate = Gate::new(&format!("gate-of-the-stopped-{word}"));
    let contest = Contest { program: PROGRAM, url: place.url(), prize: word, gate: &gate.0, hold: 1 };
    let (handle, other) = (place.handle(), place.handle());
    let (prize, next_prize) = (Prize::of(word, &handle).await, Prize::of(word, &other).await);
    let won = prize.win().await.expect("free");
    let (told, mut hears) = unbounded_channel();
    let stopped = Contenders::start(&contest, 0, 1, told);
    eventually("it waits", async || tickets(place.server()) == 1).await;
    let waits = tokio::spawn(async move { next_prize.win().await });
    eventually("both wait", async || tickets(place.server()) == 2).await;
    signal(&stopped, libc::SIGSTOP);
    let released = Instant::now();
    won.give_back().await.expect("its own");
    let won = soon(Duration::from_secs(10), "the next", waits).await.0.expect("no panic").expect("served");
    let took = released.elapsed();
    assert!(took > Duration::from_millis(900), "whose turn it was had a second: {took:?}");
    assert!(took < Duration::from_secs(3), "and no more: {took:?}");
    signal(&stopped, libc::SIGCONT);
    // It asks again, and waits again.
    eventually("it waits again", async || tickets(place.server()) == 1).await;
    assert!(won.is_held());
    let fence = won.fence();
    won.give_back().await.expect("nobody else touched it");
    let (what, later) = next(&mut hears).await;
    assert_eq!((what.as_str(), later > fence), ("inside", true));
    assert_eq!(next(&mut hears).await, ("served".to_owned(), later));
}

/// One that is stopped past its deadline as it holds the prize is late, and changes nothing of the next one's.
async fn the_late_change_nothing(place: &Place, word: &str) {
    let gate = Gate::new(&format!("gate-of-the-late-{word}"));
    let contest = Contest { program: PROGRAM, url: place.url(), prize: word, gate: &gate.0, hold: 300 };
    let handle = place.handle();
    let prize = Prize::of(word, &handle).await;
    let (told, mut hears) = unbounded_channel();
    let stopped = Contenders::start(&contest, 0, 1, told);
    let (what, fence) = next(&mut hears).await;
    assert_eq!(what, "inside");
    signal(&stopped, libc::SIGSTOP);
    let won = soon(Duration::from_secs(10), "its end", prize.win()).await.0.expect("served");
    assert!(won.fence() > fence);
    signal(&stopped, libc::SIGCONT);
    assert_eq!(next(&mut hears).await, ("late".to_owned(), fence));
    assert!(won.is_held());
    won.give_back().await.expect("nobody else touched it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_slot_of_a_pool() {
    let place = Place::redis();
    drop(Prize::slot(&place.handle()).await.win().await.expect("granted"));
    the_stopped_are_passed_over(&place, "slot").await;
    the_late_change_nothing(&place, "slot").await;
    the_killed_take_nobody_with_them(&place, "slot").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock() {
    let place = Place::redis();
    // A fresh server grants no lock until those have ended that it may have forgotten.
    let handles = [place.handle(), place.handle()];
    let prizes = handles.each_ref().map(|handle: &Handle| Prize::name(handle, "account:1"));
    drop(prizes[0].win().await.expect("granted"));
    a_burst_is_drained(&prizes).await;
    nobody_starves(&prizes).await;
    the_stopped_are_passed_over(&place, "account:2").await;
    the_late_change_nothing(&place, "account:3").await;
    the_killed_take_nobody_with_them(&place, "account:4").await;
}
