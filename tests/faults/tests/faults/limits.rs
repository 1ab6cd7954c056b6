//! Limits over real servers: what is promised to many processes, and what becomes of it when servers fail.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leasehold::client::{LimitKind, LimitOptions, Outage, Said, WaitOptions};
use leasehold::limits::Amount;
use leasehold::{Code, MILLISECOND, Micros, NativeLimit, SECOND};
use leasehold_faults::{Handle, Place, calls, eventually, handle_with, keys, soon};
use leasehold_servers::{Proxy, Resp};

const TAKER: &str = env!("CARGO_BIN_EXE_taker");
const HOUR: Micros = 3_600 * SECOND;

fn opened(url: &str) -> Handle {
    handle_with(url, "faults", 60_000.0).expect("a good address")
}

/// One that soon takes a server for lost.
fn brisk(url: &str) -> Handle {
    handle_with(url, "faults", 1_000.0).expect("a good address")
}

fn limit(handle: &Handle, name: &str, max: u64, period: Micros) -> NativeLimit {
    handle.limit_with(name, &LimitOptions::new(max, period)).expect("a good limit")
}

async fn used(limit: &NativeLimit) -> Amount {
    limit.used().await.expect("the store answers")
}

/// A process that takes, gone with this value.
struct Taker(Child);

impl Taker {
    fn start(url: &str, kind: &str, max: u64, period: u64, callers: u32, time: u64) -> Self {
        let numbers = [max.to_string(), period.to_string(), callers.to_string(), time.to_string()];
        let mut command = Command::new(TAKER);
        command.args([url, kind]).args(numbers).stdin(Stdio::null()).stdout(Stdio::piped());
        Taker(command.spawn().expect("it starts"))
    }

    /// From when until when, at the least, it had what in flight; killed as so many have flown and the last does.
    fn flights(mut self, killed_after: Option<usize>) -> Vec<(Micros, Micros)> {
        let mut flights = Vec::new();
        for line in BufReader::new(self.0.stdout.take().expect("piped")).lines() {
            let line = line.expect("text");
            let mut words = line.split(' ');
            let what = words.next();
            let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
            let at = usize::try_from(number()).expect("a number");
            if what == Some("flies") {
                assert_eq!(at, flights.len());
                flights.push((number(), number()));
                if Some(flights.len()) == killed_after {
                    self.0.kill().expect("killed");
                }
            } else {
                let (_, until): &mut (Micros, Micros) = &mut flights[at];
                *until = number().min(*until);
            }
        }
        let is_killed = killed_after.is_some_and(|count| flights.len() >= count);
        assert_eq!(self.0.wait().expect("it ends").success(), !is_killed);
        flights
    }

    /// When each take was sent and answered.
    fn takes(mut self) -> Vec<(Micros, Micros)> {
        let mut text = String::new();
        self.0.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
        assert!(self.0.wait().expect("it ends").success());
        let number = |word: Option<&str>| word.and_then(|word| word.parse().ok()).expect("a time");
        let line = |line: &str| {
            let mut words = line.split(' ');
            (number(words.next()), number(words.next()))
        };
        text.lines().map(line).collect()
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        // It fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// The store's time of a take lies between its sending and its answer, so those that lie in a window as a whole were taken in
// it: their number is bounded whatever the speed of the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_window_holds_more_than_the_bound_whoever_takes() {
    let place = Place::redis();
    for (kind, max, period) in [
        ("refill", 40, 200),
        ("gcra", 40, 200),
        ("rolling", 40, 200),
        ("budget", 40, 200),
        ("lifetime", 500, 0),
        ("refill", 5_000, 1_000),
    ] {
        let takers: Vec<_> =
            (0..4).map(|_| Taker::start(place.url(), kind, max, period, 16, 1_500)).collect();
        let read = move || takers.into_iter().flat_map(Taker::takes).collect::<Vec<_>>();
        let mut takes = tokio::task::spawn_blocking(read).await.expect("they end");
        let handle = opened(place.url());
        let all = handle.limit_with("all", &LimitOptions::new(u64::MAX, 0).kind(LimitKind::Lifetime));
        let all = all.expect("a good limit");
        // A group is charged whole: whoever was allowed is counted, and nobody else.
        assert_eq!(used(&all).await, (takes.len() as u64).into(), "{kind}");
        assert!(takes.len() as u64 >= max, "{kind}: {} takes", takes.len());
        takes.sort_unstable_by_key(|(_, answered)| *answered);
        let starts: Vec<_> = takes.iter().map(|(sent, _)| *sent).collect();
        for from in starts {
            let later = &takes[takes.partition_point(|(_, answered)| *answered < from)..];
            let inside = later.iter().filter(|(sent, _)| *sent >= from).map(|(_, answered)| *answered);
            for (count, to) in (1u128..).zip(inside) {
                let (max, period) = (u128::from(max), u128::from(period) * 1_000);
                let length = u128::from(to - from);
                let bounded = match kind {
                    "lifetime" => count <= max,
                    // Its periods are those of the store's clock, which is this.
                    "budget" => u128::from(from) / period != u128::from(to) / period || count <= max,
                    "rolling" => length >= period || count <= max,
                    _ => count * period <= max * (period + length),
                };
                assert!(bounded, "{kind}: {count} takes within {length} µs");
            }
        }
        limit(&handle, "rate", max, period).reset().await.expect("done");
        all.reset().await.expect("done");
        let rate = handle.limit_with("rate", &LimitOptions::new(max, 0).kind(LimitKind::Lifetime));
        rate.expect("a good limit").reset().await.expect("done");
    }
}

// What somebody had in flight who was killed is so until its time has passed, and no longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_in_flight_at_once_than_the_bound_whoever_takes_and_is_killed() {
    const MAX: usize = 5;
    let place = Place::redis();
    let flights: Vec<_> = [Some(1), Some(5), None, None]
        .map(|killed_after| {
            let taker = Taker::start(place.url(), "in_flight", MAX as u64, 1_000, 16, 2_500);
            tokio::task::spawn_blocking(move || taker.flights(killed_after))
        })
        .into();
    let mut all = Vec::new();
    for flights in flights {
        all.extend(flights.await.expect("they end"));
    }
    let in_flight = |at: Micros| all.iter().filter(|(from, until)| (*from..*until).contains(&at)).count();
    let most = all.iter().map(|(from, _)| in_flight(*from)).max();
    assert_eq!(most, Some(MAX), "of {} flights", all.len());
    let handle = opened(place.url());
    let rate = handle.limit_with("rate", &LimitOptions::new(MAX as u64, 0).kind(LimitKind::InFlight));
    let rate = rate.expect("a good limit");
    eventually("all have landed", async || used(&rate).await == 0u64.into()).await;
}

// A client library sends a command again whose reply it lost: it was charged twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_that_is_sent_again_is_charged_once() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let (handle, direct) = (brisk(&proxy.url()), opened(place.url()));
    let (ours, theirs) = (limit(&handle, "a", 100, 24 * HOUR), limit(&direct, "a", 100, 24 * HOUR));
    assert!(ours.increment(1u64).await.expect("taken"));
    for round in 1..=5u64 {
        proxy.drop_replies(1);
        assert!(ours.increment(1u64).await.expect("taken"));
        assert_eq!(proxy.dropped_replies(), round, "the fault did not strike");
        proxy.duplicate_next_request();
        assert!(ours.increment(1u64).await.expect("taken"));
        assert_eq!(used(&theirs).await, (1 + 2 * round).into());
    }
    // And given back once.
    proxy.drop_replies(1);
    ours.refund(3u64).await.expect("given back");
    assert_eq!(used(&theirs).await, 8u64.into());
    let reservation =
        ours.reserve(10u64, Duration::from_micros(HOUR)).await.expect("answered").expect("reserved");
    proxy.drop_replies(1);
    reservation.refund().await.expect("given back");
    assert_eq!(used(&theirs).await, 8u64.into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_closes_a_limit_unless_it_is_open() {
    let place = Place::redis();
    let handle = brisk(place.url());
    let closed = limit(&handle, "spend", 3, HOUR);
    let open =
        handle.limit_with("api", &LimitOptions::new(3u64, HOUR).outage(Outage::Open)).expect("a good limit");
    assert!(closed.increment(1u64).await.expect("taken") && open.increment(1u64).await.expect("taken"));
    place.server().kill().expect("killed");
    let bound = Duration::from_secs(10);
    let error = soon(bound, "the message", closed.take(1u64)).await.0.expect_err("closed");
    assert_eq!(error.code(), Code::StoreUnavailable);
    let waiting = soon(bound, "the message", closed.wait_with(1u64, WaitOptions::default())).await.0;
    assert!(matches!(waiting.expect_err("closed").code(), Code::StoreUnavailable | Code::TimedOut));
    // Open is not without a limit: this process takes no more than if it were alone.
    for allowed in [true, true, false] {
        let answer = soon(bound, "an answer", open.take(1u64)).await.0.expect("open");
        assert_eq!((answer.allowed, answer.said), (allowed, Said::Outage));
    }
    // One that is closed closes its group.
    let both = handle.group([Some(&open), Some(&closed)]).expect("a group");
    let error = soon(bound, "the message", both.take(1u64)).await.0.expect_err("closed");
    assert_eq!(error.code(), Code::StoreUnavailable);
    place.server().restart().expect("restarted");
    eventually("the store answers again", async || closed.take(0u64).await.is_ok()).await;
    eventually("the open one asks it", async || {
        open.take(0u64).await.is_ok_and(|answer| answer.said == Said::Store)
    })
    .await;
}

/// Once a second all of them waited for the store again, which hung.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_outage_one_take_asks_the_store_and_the_others_do_not_wait_for_that() {
    let place = Place::redis();
    let (timeout, bound) = (Duration::from_secs(3), Duration::from_secs(20));
    let handle = handle_with(place.url(), "faults", 3_000.0).expect("a good address");
    let options = LimitOptions::new(1_000u64, HOUR).outage(Outage::Open);
    let open = handle.limit_with("api", &options).expect("a good limit");
    place.server().pause().expect("paused");
    soon(bound, "an answer", open.take(1u64)).await.0.expect("open");
    // The peace that it has then ends.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let begun = std::time::Instant::now();
    let mut takes = tokio::task::JoinSet::new();
    for open in vec![open.clone(); 20] {
        takes.spawn(async move {
            let answer = open.take(1u64).await.expect("open");
            (answer.said, begun.elapsed())
        });
    }
    let (answers, _) = soon(bound, "the answers", takes.join_all()).await;
    assert!(answers.iter().all(|(said, _)| *said == Said::Outage));
    let waited = answers.iter().filter(|(_, time)| *time > timeout / 2).count();
    assert_eq!(waited, 1, "{answers:?}");
    place.server().resume().expect("resumed");
    eventually("the store is asked again", async || {
        open.take(0u64).await.is_ok_and(|answer| answer.said == Said::Store)
    })
    .await;
}

/// It was allowed everything once more by itself, of what is spent too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_outage_counts_what_the_store_allowed_before() {
    let place = Place::redis();
    let (ours, theirs) = (brisk(place.url()), opened(place.url()));
    let kinds =
        [LimitKind::Refill, LimitKind::Gcra, LimitKind::Rolling, LimitKind::Budget, LimitKind::Lifetime];
    let of = |handle: &Handle, kind: LimitKind| {
        // Whose period does not end while this runs.
        let period = if kind == LimitKind::Lifetime { 0 } else { 300 * 24 * HOUR };
        let options = LimitOptions { kind, ..LimitOptions::new(10u64, period) }.outage(Outage::Open);
        handle.limit_with(&format!("l{}", kind as u8), &options).expect("a good limit")
    };
    let mut resets = Vec::new();
    for kind in kinds {
        let (here, there) = (of(&ours, kind), of(&theirs, kind));
        assert!(there.increment(3u64).await.expect("taken"));
        assert!(here.increment(5u64).await.expect("taken"));
        here.refund(1u64).await.expect("given back");
        let kept = here.reserve(1u64, Duration::from_secs(600)).await.expect("answered").expect("reserved");
        let back = here.reserve(1u64, Duration::from_secs(600)).await.expect("answered").expect("reserved");
        kept.commit().await.expect("committed");
        back.refund().await.expect("given back");
        resets.push(here.peek(0u64).await.expect("answered").reset_after());
    }
    place.server().kill().expect("killed");
    for (kind, before) in kinds.into_iter().zip(resets) {
        let here = of(&ours, kind);
        // Of rates it counts its own five, of what is spent all eight.
        let left = if matches!(kind, LimitKind::Budget | LimitKind::Lifetime) { 2u64 } else { 5 };
        let answer = here.take(left).await.expect("open");
        assert_eq!(
            (answer.allowed, answer.said, answer.remaining),
            (true, Said::Outage, Amount::ZERO),
            "{kind:?}"
        );
        assert!(!here.take(1u64).await.expect("open").allowed, "{kind:?}");
        if kind == LimitKind::Budget {
            // By the calendar, and not by the time since this machine began.
            let (before, now) = (before.expect("a period"), answer.reset_after().expect("a period"));
            assert!(now <= before && before - now < Duration::from_secs(60), "{before:?}, {now:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_remembered_until_something_changes() {
    let place = Place::redis();
    let handle = opened(place.url());
    let limit = limit(&handle, "a", 2, HOUR);
    assert!(limit.increment(2u64).await.expect("taken"));
    let told = limit.take(1u64).await.expect("refused");
    let before = calls(place.server(), "evalsha");
    let mut remembered = 0;
    for _ in 0..1_000 {
        let answer = limit.take(1u64).await.expect("refused");
        assert!(
            !answer.allowed
                && answer.retry_after_micros <= told.retry_after_micros
                && answer.remaining == Amount::ZERO
        );
        remembered += u32::from(answer.said == Said::Memory);
    }
    let asked = calls(place.server(), "evalsha") - before;
    assert!(remembered > 0 && u64::from(1_000 - remembered) == asked, "{remembered} {asked}");
    // What is given back here is seen at once, and what is given back elsewhere soon.
    limit.refund(1u64).await.expect("given back");
    assert!(limit.increment(1u64).await.expect("taken"));
    assert!(!limit.increment(1u64).await.expect("refused"));
    let reservation_of_another = self::limit(&opened(place.url()), "a", 2, HOUR);
    reservation_of_another.reset().await.expect("done");
    eventually("it is seen", async || limit.increment(1u64).await.expect("answered")).await;
}

// TrafficJam 1: a key lived a thousand times as long as its period. And no key lives on that says nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trafficjam_1_keys_do_not_outlive_their_use() {
    let place = Place::redis();
    let handle = opened(place.url());
    let kept = || keys(place.server(), "*:limit:*");
    for kind in [LimitKind::Refill, LimitKind::Gcra, LimitKind::Rolling, LimitKind::Budget] {
        let options = LimitOptions::new(10u64, 3_600 * SECOND).kind(kind);
        let limit = handle.limit_with("hour", &options).expect("a good limit");
        assert!(limit.increment(10u64).await.expect("taken"));
        let keys = kept();
        assert_eq!(keys.len(), 1, "{keys:?}");
        let left = match place.server().command(&["PTTL", &keys[0]]).expect("a reply") {
            Resp::Int(left) => left,
            other => panic!("{other:?}"),
        };
        // A budget's is used to the end of the next period, whose length it says.
        let used = if kind == LimitKind::Budget { 3_500_000..=7_200_001 } else { 1..=3_600_001 };
        assert!(used.contains(&left), "{kind:?}: {left} ms");
        limit.refund(10u64).await.expect("given back");
        if kind == LimitKind::Budget {
            // That nothing is used of it is known as long.
            let left = place.server().command(&["PTTL", &kept()[0]]).expect("a reply");
            assert!(used.contains(&left.as_int().expect("a time")), "{left:?}");
            place.server().command(&["FLUSHALL"]).expect("a reply");
        }
        assert!(kept().is_empty(), "as if never used");
        let brief = LimitOptions::new(10u64, 20 * MILLISECOND).kind(kind);
        assert!(
            handle.limit_with("brief", &brief).expect("a good limit").increment(1u64).await.expect("taken")
        );
        eventually("it is gone", async || kept().is_empty()).await;
    }
}

// TrafficJam 4: a leftover `print` was refused by the sandbox of Redis 7. Every kind runs on the server that is there, also
// when that has forgotten the script.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trafficjam_4_every_kind_runs_on_a_real_server() {
    use LimitKind::{Budget, Gcra, InFlight, Lifetime, Refill, Rolling};
    let place = Place::redis();
    let handle = opened(place.url());
    for kind in [Refill, Gcra, Rolling, Lifetime, Budget, InFlight] {
        place.server().command(&["SCRIPT", "FLUSH"]).expect("a reply");
        let max = 1_000u64;
        let period = if matches!(kind, Lifetime | InFlight) { 0 } else { 300 * 24 * HOUR };
        let options = LimitOptions::new(max, period).kind(kind);
        let limit = handle.limit_with("every", &options).expect("a good limit");
        let reservation =
            limit.reserve(max - 1, Duration::from_micros(HOUR)).await.expect("answered").expect("reserved");
        assert_eq!(used(&limit).await, (max - 1).into(), "{kind:?}");
        let refused =
            limit.reserve(2u64, Duration::from_micros(HOUR)).await.expect("answered").expect_err("too much");
        assert_eq!(refused.remaining, 1u64.into());
        reservation.refund().await.expect("given back");
        assert_eq!(limit.remaining().await.expect("answered"), max.into(), "{kind:?}");
    }
}

// Who waits is allowed at the told time, and asks no oftener than that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_asks_at_the_told_times() {
    let place = Place::redis();
    let handle = opened(place.url());
    let limit = limit(&handle, "a", 1, 150 * MILLISECOND);
    assert!(limit.increment(1u64).await.expect("taken"));
    let before = calls(place.server(), "evalsha");
    let waiting = (0..4).map(|_| {
        let limit = limit.clone();
        let options = WaitOptions { timeout: 60 * SECOND, priority: 0 };
        tokio::spawn(async move { limit.wait_with(1u64, options).await })
    });
    for task in waiting.collect::<Vec<_>>() {
        let answer = soon(Duration::from_secs(60), "its turn", task).await.0.expect("no panic");
        assert!(answer.expect("allowed").allowed);
    }
    let asked = calls(place.server(), "evalsha") - before;
    // Each asks when its turn comes, and once more at the time that it is told; clocks differ by a moment.
    assert!(asked <= 16, "{asked} calls for four turns");
}

// A take that is under way as the time runs out was cut off: charged, and its caller told that it was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_is_told_of_what_was_charged_however_short_the_time() {
    let place = Place::redis();
    let handle = opened(place.url());
    for (name, timeout) in [("once", 0), ("shortly", 300)] {
        let bounded = limit(&handle, name, 20, HOUR);
        let mut allowed = 0u64;
        for _ in 0..30 {
            match bounded.wait_with(1u64, WaitOptions { timeout, priority: 0 }).await {
                Ok(answer) => allowed += u64::from(answer.allowed),
                Err(error) => assert_eq!(error.code(), Code::TimedOut),
            }
        }
        assert_eq!((allowed, used(&bounded).await), (20, 20u64.into()), "{name}");
    }
}

// A busy process, whose own callers claim as it gives back, left one of another no moment, and least if that wants much.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_waiter_of_another_process_gets_its_share_of_what_is_in_flight() {
    let place = Place::redis();
    let (busy, lone) = (opened(place.url()), opened(place.url()));
    let of = |handle: &Handle, name: &str| {
        let options = LimitOptions::new(2u64, 0).kind(LimitKind::InFlight);
        handle.limit_with(name, &options).expect("a good limit")
    };
    for (name, cost) in [("one", 1u64), ("both", 2)] {
        let (theirs, ours) = (of(&busy, name), of(&lone, name));
        let served = Arc::new(AtomicU64::new(0));
        let crowd: Vec<_> = (0..8)
            .map(|_| {
                let (theirs, served) = (theirs.clone(), served.clone());
                tokio::spawn(async move {
                    loop {
                        let taken = theirs.wait_to_reserve(1u64, Duration::from_secs(30));
                        let taken = taken.timeout(Duration::from_secs(60)).await.expect("its turn");
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        taken.commit().await.expect("its own");
                        served.fetch_add(1, Relaxed);
                    }
                })
            })
            .collect();
        for _ in 0..4 {
            let before = served.load(Relaxed);
            eventually("all of it is in use", async || served.load(Relaxed) > before + 40).await;
            let wait = ours.wait_to_reserve(cost, Duration::from_secs(30)).timeout(Duration::from_secs(60));
            let taken = soon(Duration::from_secs(2), "its turn", async { wait.await }).await.0;
            taken.expect("its turn").commit().await.expect("its own");
        }
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
