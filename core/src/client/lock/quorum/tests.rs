use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use super::*;
use crate::client::faulty::{DEAD, DELAY, Faulty, HUNG, MUTE, SLOW, WELL};
use crate::client::{Keepalive, Locked, OpenOptions, RunError};
use crate::runtime::{StoreClock, TokioRuntime, idle};
use crate::store::MemoryStore;

/// The time that has passed, on the client's clock.
struct Stopwatch(Micros);

impl Stopwatch {
    fn now() -> Micros {
        TokioRuntime::new(tokio::runtime::Handle::current()).now()
    }

    fn start() -> Self {
        Stopwatch(Self::now())
    }

    fn elapsed(&self) -> Micros {
        Self::now() - self.0
    }
}

type FaultyQuorum = Quorum<Faulty, TokioRuntime>;
type FaultyLocked = Locked<Faulty, TokioRuntime>;

const TTL: Micros = SECOND;

fn servers(count: usize) -> Vec<Faulty> {
    (0..count).map(|_| Faulty::new(TokioRuntime::store_clock())).collect()
}

/// A process of its own, as far as the servers can tell.
fn quorum(servers: &[Faulty]) -> FaultyQuorum {
    Quorum::new(servers.iter().map(|server| server.opened(TTL)).collect()).unwrap()
}

fn waiting(timeout: Micros) -> LockOptions {
    LockOptions { ttl: TTL, timeout, ..LockOptions::default() }
}

fn at_once() -> LockOptions {
    waiting(0)
}

async fn locked(quorum: &FaultyQuorum, options: LockOptions) -> Result<FaultyLocked> {
    quorum.lock_with(["a", "b"], options)?.acquire().await
}

/// At how many servers both names can be had by another.
async fn free(servers: &[Faulty]) -> usize {
    let mut count = 0;
    for server in servers {
        let lock = server.opened(TTL).lock_with(["a", "b"], at_once()).unwrap();
        count += usize::from(lock.acquire().await.is_ok());
    }
    count
}

async fn eventually_free(servers: &[Faulty], count: usize) {
    let began = Stopwatch::start();
    while free(servers).await != count {
        assert!(began.elapsed() < 10 * SECOND, "{count} servers are to be free");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn bounded<T>(time: Micros, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_micros(time), work).await.expect("it settles")
}

#[tokio::test(start_paused = true)]
async fn a_majority_is_needed_and_enough_for_any_number_of_servers() {
    for count in 1..=MAX_SERVERS {
        let needed = count / 2 + 1;
        for dead in 0..=count {
            let servers = servers(count);
            servers.iter().take(dead).for_each(|server| server.is(DEAD));
            let (here, there) = (quorum(&servers), quorum(&servers));
            let outcome = bounded(10 * SECOND, locked(&here, at_once())).await;
            if count - dead >= needed {
                let held = outcome.unwrap();
                assert!(held.is_held());
                assert_eq!(locked(&there, at_once()).await.unwrap_err().code(), Code::Exhausted);
                held.release().await.unwrap();
                assert_eq!(free(&servers[dead..]).await, count - dead, "of {count}, {dead} dead");
            } else {
                let error = outcome.unwrap_err();
                assert_eq!(error.code(), Code::StoreUnavailable, "of {count}, {dead} dead");
                assert!(error.message().contains("connection refused"), "{error}");
                if count > 1 {
                    let said = format!("{} of {count} servers answered, and {needed} must", count - dead);
                    assert!(error.message().contains(&said), "{error}");
                }
                assert_eq!(free(&servers[dead..]).await, count - dead, "what was had is given back");
            }
        }
    }
}

// In node-redlock two clients with half of the votes each never settled, whatever their number of retries.
#[tokio::test(start_paused = true)]
async fn a_split_vote_settles() {
    for count in [2, 4, 3] {
        let servers = servers(count);
        let (left, right) = servers.split_at(count / 2);
        let voters = quorum(&servers);
        // Half is another's, who never gives it back.
        let mut others = Vec::new();
        for server in left {
            let lock = server.opened(TTL).lock_with(["a", "b"], at_once()).unwrap();
            others.push(lock.acquire().await.unwrap());
        }
        // A third server too many, so that both halves are too few.
        if count == 3 {
            right[1].is(HUNG);
        }
        let lacks = format!("{} of {count} servers granted the lock and ", count / 2);
        for (options, code) in [(at_once(), Code::Exhausted), (waiting(SECOND / 4), Code::TimedOut)] {
            let timeout = options.timeout;
            let began = Stopwatch::start();
            let error = bounded(10 * SECOND, locked(&voters, options)).await.unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            assert!(
                error.message().contains(&lacks) && error.message().contains("must grant it; the lock"),
                "{error}"
            );
            assert!(began.elapsed() >= timeout);
        }
        eventually_free(&servers, count - count / 2 - usize::from(count == 3)).await;
        // They meet, again and again, and each is served.
        others.clear();
        let both = [quorum(&servers), quorum(&servers)].map(|quorum| {
            tokio::spawn(async move {
                for _ in 0..20 {
                    drop(locked(&quorum, waiting(20 * SECOND)).await?);
                }
                Ok::<_, Error>(())
            })
        });
        for one in both {
            bounded(60 * SECOND, one).await.unwrap().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_holds_nobody_up() {
    let servers = servers(3);
    servers[1].is(HUNG);
    let voters = quorum(&servers);
    let began = Stopwatch::start();
    let held = bounded(SECOND, locked(&voters, at_once())).await.unwrap();
    // The others were enough, and nobody waited for the time that an answer may take.
    assert!(began.elapsed() < 100 * MILLISECOND, "{} µs", began.elapsed());
    // Nor is it waited for where two refuse.
    let began = Stopwatch::start();
    let error = locked(&quorum(&servers), at_once()).await.unwrap_err();
    assert_eq!(error.code(), Code::Exhausted, "{error}");
    assert!(began.elapsed() < 100 * MILLISECOND, "{} µs", began.elapsed());
    let began = Stopwatch::start();
    held.release().await.unwrap();
    assert!(began.elapsed() < 100 * MILLISECOND, "{} µs", began.elapsed());
    let began = Stopwatch::start();
    // Without a majority of answers it is waited for, once.
    servers[2].is(HUNG);
    let error = bounded(SECOND, locked(&voters, at_once())).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable);
    assert!(error.message().contains("1 of 3 servers answered, and 2 must; servers[1]: "), "{error}");
    assert!(began.elapsed() >= 100 * MILLISECOND);
    // What it was asked before it came to itself is nobody's.
    servers.iter().for_each(|server| server.is(WELL));
    eventually_free(&servers, 3).await;
}

#[tokio::test(start_paused = true)]
async fn who_gave_no_answer_is_not_waited_for_again_at_once() {
    let servers = servers(3);
    let held = servers[0].opened(TTL).lock_with(["a", "b"], at_once()).unwrap().acquire().await.unwrap();
    servers[1].is(HUNG);
    let voters = quorum(&servers);
    for is_waited_for in [true, false, false] {
        let began = Stopwatch::start();
        // One refuses and one grants: the third could have decided.
        let error = locked(&voters, at_once()).await.unwrap_err();
        assert_eq!(error.code(), Code::Exhausted, "{error}");
        assert_eq!(began.elapsed() >= 100 * MILLISECOND, is_waited_for, "{} µs", began.elapsed());
    }
    // It counts as soon as it answers with the others.
    servers[1].is(WELL);
    let locked = locked(&voters, waiting(5 * SECOND)).await.unwrap();
    assert!(locked.is_held() && held.is_held());
}

// The error of a server that was dead counted as the answer beside which it was not needed.
#[tokio::test(start_paused = true)]
async fn who_gave_no_answer_is_waited_for_where_it_is_needed() {
    let servers = servers(3);
    let opened = |server: &Faulty| {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let options = OpenOptions { lock_ttl: 60 * SECOND, ..OpenOptions::default() };
        Leasehold::new(server.clone(), runtime, options).unwrap()
    };
    let voters = Quorum::new(servers.iter().map(opened).collect()).unwrap();
    // It hung, and is well again.
    let suspect_until = &voters.servers.all[2].suspect_until;
    suspect_until.store(Stopwatch::now() + 60 * SECOND, SeqCst);
    servers[0].is(DEAD);
    servers[2].is(SLOW);
    let options = LockOptions { ttl: 60 * SECOND, ..at_once() };
    let held = bounded(10 * SECOND, locked(&voters, options)).await.unwrap();
    assert!(held.is_held());
    assert_eq!(suspect_until.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_release_says_what_is_known() {
    for (forgetful, hung, expected) in [
        (1, 0, None),
        (2, 0, Some(Code::Lost)),
        (0, 1, None),
        (0, 2, Some(Code::StoreUnavailable)),
        (1, 1, Some(Code::StoreUnavailable)),
        (2, 1, Some(Code::Lost)),
    ] {
        let servers = servers(3);
        let voters = quorum(&servers);
        let options = LockOptions { keepalive: Keepalive::Off, ..at_once() };
        let held = locked(&voters, options).await.unwrap();
        servers.iter().take(forgetful).for_each(Faulty::forgets);
        servers.iter().rev().take(hung).for_each(|server| server.is(HUNG));
        let began = Stopwatch::start();
        let end = bounded(5 * SECOND, held.release()).await;
        // What is known is not waited for: a server that hangs has 100 ms to answer.
        let is_known = expected != Some(Code::StoreUnavailable);
        assert_eq!(began.elapsed() < 100 * MILLISECOND, is_known, "{} µs", began.elapsed());
        assert_eq!(end.err().map(|error| error.code()), expected, "{forgetful} forgot, {hung} hang");
    }
}

/// A quorum's lock that lasts for 10 of the 60 seconds that it may.
async fn brief(servers: &[Faulty]) -> FaultyLocked {
    let options = LockOptions { ttl: 10 * SECOND, keepalive: Keepalive::Off, ..at_once() };
    let handles = servers.iter().map(|server| server.opened(60 * SECOND)).collect();
    locked(&Quorum::new(handles).unwrap(), options).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_renewal_says_what_is_known() {
    for (forgetful, hung, expected) in [
        (0, 0, None),
        (1, 0, None),
        (2, 0, Some(Code::Lost)),
        (0, 1, None),
        (0, 2, Some(Code::StoreUnavailable)),
        (1, 1, Some(Code::StoreUnavailable)),
    ] {
        let servers = servers(3);
        let held = brief(&servers).await;
        servers.iter().take(forgetful).for_each(Faulty::forgets);
        servers.iter().rev().take(hung).for_each(|server| server.is(HUNG));
        let end = bounded(5 * SECOND, held.renew_for(Duration::from_secs(60))).await;
        assert_eq!(end.err().map(|error| error.code()), expected, "{forgetful} forgot, {hung} hang");
        // What a majority did not prolong lasts as long as before, unless it was lost.
        assert_eq!(held.remaining() > Duration::from_secs(30), expected.is_none());
        assert_eq!(held.is_held(), expected != Some(Code::Lost));
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_of_a_quorum_end_at_max_hold() {
    let servers = servers(3);
    let handles = servers.iter().map(|server| server.opened(60 * SECOND)).collect();
    let quorum = Quorum::new(handles).unwrap();
    // It lasts for less than a quarter of its time to live.
    let options = LockOptions { ttl: 60 * SECOND, max_hold: 10 * SECOND, ..at_once() };
    let held = locked(&quorum, options).await.unwrap();
    held.renew().await.unwrap();
    assert!(held.is_held() && held.remaining() <= Duration::from_secs(10));
    let wrong = LockOptions { max_hold: 366 * 86_400 * SECOND, ..at_once() };
    assert_eq!(quorum.lock_with(["a"], wrong).unwrap_err().field(), Some("max_hold"));
}

#[tokio::test(start_paused = true)]
async fn what_a_quorum_holds_is_ended_by_force_at_all_servers() {
    let servers = servers(3);
    let held = brief(&servers).await;
    let lock = quorum(&servers).lock_with(["a", "b"], at_once()).unwrap();
    assert_eq!(lock.inspect().await.unwrap_err().field(), Some("inspect"));
    let of_one = servers[1].opened(TTL).lock_with(["b"], at_once()).unwrap();
    assert!(of_one.inspect().await.unwrap().iter().all(crate::client::LockState::is_held));
    servers[0].is(DEAD);
    servers[1].is(DEAD);
    assert_eq!(lock.break_lease().await.unwrap_err().code(), Code::StoreUnavailable);
    servers[1].is(WELL);
    lock.break_lease().await.unwrap();
    assert_eq!(free(&servers[1..]).await, 2);
    servers[0].is(WELL);
    lock.break_lease().await.unwrap();
    assert_eq!(free(&servers).await, 3);
    assert_eq!(held.renew().await.unwrap_err().code(), Code::Lost);
}

#[tokio::test(start_paused = true)]
async fn who_answers_late_holds_on_what_was_renewed() {
    let servers = servers(3);
    let held = brief(&servers).await;
    servers[2].is(SLOW);
    let began = Stopwatch::start();
    held.renew_for(Duration::from_secs(60)).await.unwrap();
    assert!(began.elapsed() < DELAY, "nobody waited for it: {} µs", began.elapsed());
    // Without it there would be one left.
    servers[0].forgets();
    held.renew_for(Duration::from_secs(1)).await.unwrap();
    bounded(10 * SECOND, async {
        while held.remaining() < Duration::from_secs(30) {
            idle().await;
        }
    })
    .await;
}

// A majority was lost with the answer, and nobody gave back what the server had granted.
#[tokio::test(start_paused = true)]
async fn what_was_granted_without_an_answer_is_given_back() {
    let servers = servers(3);
    servers[2].is(MUTE);
    let quorum = quorum(&servers);
    let held = bounded(SECOND, locked(&quorum, at_once())).await.unwrap();
    assert_eq!(free(&servers[2..]).await, 0);
    held.release().await.unwrap();
    servers[2].is(WELL);
    let began = Stopwatch::start();
    eventually_free(&servers, 3).await;
    assert!(began.elapsed() < TTL * 9 / 10, "not as it ran out, after {TTL}");
}

#[tokio::test(start_paused = true)]
async fn it_lasts_while_a_majority_keeps_it_and_is_lost_with_that() {
    let servers = servers(5);
    let here = quorum(&servers);
    let held = locked(&here, at_once()).await.unwrap();
    let lost = tokio::spawn(held.lost());
    servers[0].is(DEAD);
    servers[1].is(HUNG);
    tokio::time::sleep(Duration::from_micros(TTL * 3 / 2)).await;
    assert!(held.is_held() && !lost.is_finished(), "three of five have renewed it");
    assert!(held.remaining_micros() <= TTL);
    servers[2].is(DEAD);
    let error = bounded(2 * SECOND, lost).await.unwrap().unwrap();
    assert_eq!((error.code(), held.is_held(), held.remaining_micros()), (Code::Lost, false, 0));
    // Releasing what is known to be lost took as many attempts as acquiring, in node-redlock.
    let began = Stopwatch::start();
    assert_eq!(held.release().await.unwrap_err().code(), Code::Lost);
    assert!(began.elapsed() < 50 * MILLISECOND, "{} µs", began.elapsed());
    held.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_grants_late_holds_the_lock_too() {
    let servers = servers(3);
    let here = quorum(&servers);
    // From now on each takes one message.
    locked(&here, at_once()).await.unwrap().release().await.unwrap();
    servers[2].is(SLOW);
    let began = Stopwatch::start();
    let held = locked(&here, at_once()).await.unwrap();
    assert!(began.elapsed() < DELAY, "nobody waited for it: {} µs", began.elapsed());
    let lost = held.lost();
    tokio::time::sleep(Duration::from_micros(2 * DELAY)).await;
    servers[2].is(WELL);
    // Without it there would be one left.
    servers[0].is(DEAD);
    tokio::time::sleep(Duration::from_micros(TTL * 3 / 2)).await;
    assert!(held.is_held());
    servers[1].is(DEAD);
    assert!(bounded(2 * TTL, lost).await.is_some() && !held.is_held());
}

#[tokio::test(start_paused = true)]
async fn who_grants_late_does_not_bring_back_what_is_lost() {
    let servers = servers(3);
    let here = quorum(&servers);
    // From now on each takes one message.
    locked(&here, at_once()).await.unwrap().release().await.unwrap();
    servers[2].is(SLOW);
    let keepalive = Keepalive::Every(5 * MILLISECOND);
    let held = locked(&here, LockOptions { keepalive, ..at_once() }).await.unwrap();
    servers[0].forgets();
    let error = bounded(DELAY, held.lost()).await.unwrap();
    assert_eq!(error.code(), Code::Lost);
    tokio::time::sleep(Duration::from_micros(2 * DELAY)).await;
    assert!(!held.is_held(), "in between it may have been another's");
    servers[2].is(WELL);
    eventually_free(&servers[2..], 1).await;
    assert_eq!(held.release().await.unwrap_err().code(), Code::Lost);
}

// It went on for as long as the body ran, and with two such holders no third had a majority of servers that were all there.
#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_lost_lock_is_renewed_no_more() {
    let servers = servers(3);
    let held = locked(&quorum(&servers), at_once()).await.unwrap();
    servers[..2].iter().for_each(Faulty::forgets);
    assert!(bounded(2 * TTL, held.lost()).await.is_some());
    // While its holder has yet to give it back.
    eventually_free(&servers[2..], 1).await;
    assert_eq!(held.release().await.unwrap_err().code(), Code::Lost);
}

// Servers that had joined late were not counted once it was given back.
#[tokio::test(start_paused = true)]
async fn a_lock_that_a_majority_took_back_in_time_was_not_lost() {
    let servers = servers(3);
    let here = Quorum::new(servers.iter().map(|server| server.opened(60 * SECOND)).collect()).unwrap();
    let options = || LockOptions { keepalive: Keepalive::Off, ttl: 60 * SECOND, ..at_once() };
    // From now on each takes one message.
    locked(&here, options()).await.unwrap().release().await.unwrap();
    servers[2].is(SLOW);
    let held = locked(&here, options()).await.unwrap();
    let lost = held.lost();
    tokio::time::sleep(Duration::from_micros(2 * DELAY)).await;
    servers[2].is(WELL);
    servers[0].forgets();
    held.release().await.unwrap();
    drop(held);
    assert_eq!(bounded(10 * SECOND, lost).await.map(|error| error.code()), None);
}

// It was said of the servers, which are well, that they are not there.
#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_get_to_ask_is_busy() {
    let servers = servers(3);
    let voters = quorum(&servers).servers;
    let busy = || Some(Err(Error::new(Code::Busy, "too many requests wait here; try again later")));
    let dead = || Some(Err(Error::new(Code::StoreUnavailable, "connection refused")));
    for (votes, code) in
        [(vec![busy(), busy(), busy()], Code::Busy), (vec![busy(), None, dead()], Code::StoreUnavailable)]
    {
        voters.note(&votes, 0);
        assert_eq!(voters.all[0].suspect_until.load(SeqCst), 0);
        assert_eq!(voters.refusal(votes, &at_once(), SECOND).code(), code);
    }
}

// In node-redlock `using` threw away what its routine gave when the lock did not last.
#[tokio::test(start_paused = true)]
async fn what_the_body_gave_is_not_thrown_away() {
    let servers = servers(3);
    let here = quorum(&servers);
    let lock = here.lock_with(["a", "b"], LockOptions { keepalive: Keepalive::Off, ..at_once() }).unwrap();
    let kept = lock.run(async |locked| (locked.is_held(), "what it gave")).await.unwrap();
    assert_eq!(kept, (true, "what it gave"));
    let body = async |locked: &FaultyLocked| {
        locked.lost().await.unwrap();
        "what it gave"
    };
    match lock.run(body).await {
        Err(RunError::Lost { error, output }) => {
            assert_eq!((error.code(), output), (Code::Lost, "what it gave"));
        }
        other => panic!("{other:?}"),
    }
}

// node-redlock never looked, and gave out locks that had run out.
#[tokio::test(start_paused = true)]
async fn a_lock_that_has_run_out_as_it_comes_is_not_handed_out() {
    // Whose time passes with every look: each look is half of the time that a lock lives.
    let time = Arc::new(AtomicU64::new(1_700_000_000 * SECOND));
    let clock: StoreClock = Arc::new(move || time.fetch_add(TTL / 2, SeqCst));
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let options = OpenOptions { lock_ttl: TTL, ..OpenOptions::default() };
    let opened =
        || Leasehold::new(MemoryStore::new(clock.clone()), runtime.clone(), options.clone()).unwrap();
    let quorum = Quorum::new((0..3).map(|_| opened()).collect()).unwrap();
    for (timeout, code) in [(0, Code::Exhausted), (SECOND / 10, Code::TimedOut)] {
        let options = LockOptions { keepalive: Keepalive::Off, ..waiting(timeout) };
        let error = quorum.lock_with(["a"], options).unwrap().acquire().await.unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.message().contains("too late to leave a quarter of its ttl"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_forgets_lets_nobody_else_in() {
    let servers = servers(3);
    let (here, there) = (quorum(&servers), quorum(&servers));
    let held = locked(&here, at_once()).await.unwrap();
    let fence = held.fence();
    servers[0].forgets();
    let error = locked(&there, at_once()).await.unwrap_err();
    assert_eq!(error.code(), Code::Exhausted, "{error}");
    assert!(held.is_held());
    held.release().await.unwrap();
    assert!(locked(&there, waiting(5 * SECOND)).await.unwrap().fence() > fence);
}

#[tokio::test(start_paused = true)]
async fn who_acquires_again_shares_and_the_last_gives_back_everywhere() {
    let servers = servers(3);
    let (here, there) = (quorum(&servers), quorum(&servers));
    let lock = here.lock_with(["a", "b"], LockOptions { reentrant: true, ..at_once() }).unwrap();
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    assert_eq!(inner.fence(), outer.fence());
    outer.release().await.unwrap();
    assert_eq!(locked(&there, at_once()).await.unwrap_err().code(), Code::Exhausted);
    drop(inner);
    eventually_free(&servers, 3).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_inside_twice_whatever_fails() {
    const TASKS: u32 = 8;
    let servers = servers(3);
    let inside = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (quorum, inside) = (quorum(&servers), inside.clone());
            tokio::spawn(async move {
                for _ in 0..10 {
                    let held = locked(&quorum, waiting(60 * SECOND)).await.unwrap();
                    assert_eq!(inside.fetch_add(1, SeqCst), 0, "two are inside");
                    idle().await;
                    inside.fetch_sub(1, SeqCst);
                    held.release().await.unwrap();
                }
            })
        })
        .collect();
    // One after the other fails in one way after the other, and comes back before the next.
    let failing = tokio::spawn(async move {
        for (server, state) in servers.iter().cycle().zip([DEAD, HUNG, MUTE].into_iter().cycle()) {
            server.is(state);
            tokio::time::sleep(Duration::from_millis(30)).await;
            server.is(WELL);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    });
    for task in tasks {
        bounded(60 * SECOND, task).await.unwrap();
    }
    failing.abort();
}

/// Locks that three servers grant whose clocks are so far ahead, or an error.
async fn fences(ahead: [Micros; 3], ends: impl AsyncFn(&FaultyLocked)) -> (u64, u64) {
    let ahead = ahead.map(|ahead| {
        let clock = TokioRuntime::store_clock();
        Faulty::new(Arc::new(move || clock() + ahead))
    });
    let options = || LockOptions { keepalive: Keepalive::Off, ..waiting(20 * SECOND) };
    // The first cannot reach the last server, and the second not the first.
    ahead[2].is(DEAD);
    let first = locked(&quorum(&ahead), options()).await.unwrap();
    ahead[2].is(WELL);
    ends(&first).await;
    ahead[0].is(DEAD);
    let second = locked(&quorum(&ahead), options()).await.unwrap();
    (first.fence(), second.fence())
}

#[tokio::test(start_paused = true)]
async fn fences_are_in_order_while_clocks_differ_by_less_than_the_acquisitions() {
    // Who was lost is at least a time to live behind, and refused by a resource that has heard of the next.
    let lost = async |first: &FaultyLocked| drop(first.lost().await.unwrap());
    let (first, second) = fences([TTL * 9 / 10, 0, 0], lost).await;
    assert!(second > first, "{second} after {first}");
    // What is documented of those who give back at once: here the next one's fence is the lower.
    let given_back = async |first: &FaultyLocked| first.release().await.unwrap();
    let (first, second) = fences([3600 * SECOND, 0, 0], given_back).await;
    assert!(second < first, "{second} after {first}");
}

#[tokio::test(start_paused = true)]
async fn closing_ends_those_who_wait() {
    let servers = servers(3);
    let (here, there) = (Arc::new(quorum(&servers)), quorum(&servers));
    let held = locked(&there, at_once()).await.unwrap();
    let waits = here.clone();
    let waits = tokio::spawn(async move { locked(&waits, waiting(60 * SECOND)).await });
    let before = here.lock_with(["b"], at_once()).unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    here.close();
    let error = bounded(5 * SECOND, waits).await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::Cancelled);
    assert_eq!(before.acquire().await.unwrap_err().code(), Code::Cancelled);
    assert_eq!(here.lock_with(["a"], at_once()).unwrap_err().code(), Code::Cancelled);
    held.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_is_refused() {
    let ten = servers(MAX_SERVERS + 1);
    for wrong in [&[][..], &ten] {
        let opened = wrong.iter().map(|server| server.opened(TTL)).collect();
        let error = Quorum::<_, TokioRuntime>::new(opened).unwrap_err();
        assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("servers")));
    }
    let other = vec![ten[0].opened(TTL), ten[1].opened(TTL), ten[2].opened(2 * TTL)];
    assert_eq!(Quorum::new(other).unwrap_err().field(), Some("servers[2]"));
    let quorum = quorum(&ten[..3]);
    let field = |options| quorum.lock_with(["a"], options).unwrap_err().field().map(str::to_owned);
    assert_eq!(field(LockOptions { priority: 1, ..at_once() }).as_deref(), Some("priority"));
    assert_eq!(field(LockOptions { ttl: 2 * TTL, ..at_once() }).as_deref(), Some("ttl"));
    let slow = LockOptions { keepalive: Keepalive::Every(TTL), ..at_once() };
    assert_eq!(field(slow).as_deref(), Some("keepalive"));
    let lock = quorum.lock_with(["a"], at_once()).unwrap();
    let options = LockOptions { priority: -1, ..at_once() };
    assert_eq!(lock.acquire_with(options).await.unwrap_err().field(), Some("priority"));
    // One server has a line.
    let one = Quorum::new(vec![ten[0].opened(TTL)]).unwrap();
    assert!(one.lock_with(["a"], LockOptions { priority: 1, ..at_once() }).is_ok());
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let ages = |server: &Faulty| {
        let options = OpenOptions { lock_ageing: SECOND, ..OpenOptions::default() };
        Leasehold::new(server.clone(), runtime.clone(), options).unwrap()
    };
    assert!(Quorum::new(vec![ages(&ten[0])]).is_ok());
    let several = Quorum::new(ten[..3].iter().map(ages).collect());
    assert_eq!(several.unwrap_err().field(), Some("lock_ageing"));
}

// The last round had less time than an answer takes, and nobody was said to have the lock.
#[tokio::test(start_paused = true)]
async fn who_waited_for_others_has_timed_out_however_short_its_last_round() {
    let servers = servers(3);
    let held = locked(&quorum(&servers), waiting(0)).await.unwrap();
    let others: Vec<_> = (0..10).map(|_| quorum(&servers)).collect();
    for other in &others {
        // What a lock is, its servers have heard by then.
        locked(other, waiting(0)).await.unwrap_err();
    }
    servers.iter().for_each(|server| server.is(SLOW));
    let tries = others
        .into_iter()
        .map(|quorum| async move { locked(&quorum, waiting(300 * MILLISECOND)).await.unwrap_err() });
    for error in futures_util::future::join_all(tries).await {
        assert_eq!(error.code(), Code::TimedOut, "{error}");
    }
    drop(held);
}

// It asked without pause until its timeout.
#[tokio::test]
async fn who_waits_in_a_runtime_that_ended_is_told_so() {
    for state in [WELL, HUNG] {
        let other =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let servers = servers(3);
        let held = locked(&quorum(&servers), at_once()).await.unwrap();
        let voters = {
            let _entered = other.enter();
            quorum(&servers)
        };
        servers.iter().for_each(|server| server.is(state));
        let waits = tokio::spawn(async move { locked(&voters, waiting(60 * SECOND)).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        other.shutdown_background();
        let error = bounded(5 * SECOND, waits).await.unwrap().unwrap_err();
        assert_eq!(error.code(), Code::Cancelled, "{error}");
        assert!(error.message().contains("the runtime ended"), "{error}");
        drop(held);
    }
}
