//! A process of many callers that take of a limit, as often as they are allowed, and of a lifetime with it.
//!
//! `taker URL KIND MAX PERIOD_MS CALLERS TIME_MS`. Each take that is allowed is a line: when it was sent and when it was
//! answered, in microseconds of the clock by which the store goes. Times in between are the store's. Of what is in flight, for
//! `PERIOD_MS` if nobody says more, it is `flies NUMBER FROM UNTIL`, which is so at the least, and `lands NUMBER AT` before that is
//! said.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold::client::{LimitKind, LimitOptions};
use leasehold::{Code, MILLISECOND, Micros, NativeLimit};
use leasehold_faults::handle_with;

/// How long each has in flight what it is allowed.
const FLIGHT: Duration = Duration::from_millis(20);

fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    since.as_micros().try_into().expect("a time")
}

fn say(line: std::fmt::Arguments<'_>) {
    writeln!(std::io::stdout(), "{line}").expect("somebody reads");
}

async fn pause() {
    tokio::time::sleep(Duration::from_micros(500)).await;
}

async fn take(limit: NativeLimit, until: Micros) {
    while now() < until {
        let sent = now();
        if limit.increment(1u64).await.expect("the store answers") {
            say(format_args!("{sent} {}", now()));
        } else {
            pause().await;
        }
    }
}

async fn fly(limit: NativeLimit, ttl: Micros, until: Micros) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    while now() < until {
        let sent = now();
        match limit.reserve(1u64, Duration::from_micros(ttl)).await {
            Ok(Ok(reservation)) => {
                let number = NUMBER.fetch_add(1, Relaxed);
                say(format_args!("flies {number} {} {}", now(), sent + ttl));
                tokio::time::sleep(FLIGHT).await;
                say(format_args!("lands {number} {}", now()));
                if let Err(error) = reservation.commit().await {
                    assert_eq!(error.code(), Code::Lost, "{error}");
                }
            }
            Ok(Err(_)) => pause().await,
            // The answer came when little was left of it.
            Err(error) => assert_eq!(error.code(), Code::StoreUnavailable, "{error}"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, kind, max, period, callers, time] = words.as_slice() else {
        panic!("taker URL KIND MAX PERIOD_MS CALLERS TIME_MS")
    };
    let number = |text: &String| text.parse::<u64>().expect("a number");
    // No answer is late here, however busy the machine.
    let handle = handle_with(url, "faults", 60_000.0).expect("a good address");
    let (max, time, period) = (number(max), number(time) * MILLISECOND, number(period) * MILLISECOND);
    let (kind, lasts) = match kind.as_str() {
        "gcra" => (LimitKind::Gcra, period),
        "rolling" => (LimitKind::Rolling, period),
        "lifetime" => (LimitKind::Lifetime, period),
        "budget" => (LimitKind::Budget, period),
        "in_flight" => (LimitKind::InFlight, 0),
        _ => (LimitKind::Refill, period),
    };
    let rate = handle.limit_with("rate", &LimitOptions::new(max, lasts).kind(kind)).expect("a limit");
    let all = LimitOptions::new(u64::MAX, 0).kind(LimitKind::Lifetime);
    let all = handle.limit_with("all", &all).expect("a limit");
    let group = handle.group([Some(&rate), Some(&all)]).expect("a group");
    let until = now() + time;
    let callers = (0..number(callers)).map(|_| match kind {
        LimitKind::InFlight => tokio::spawn(fly(group.clone(), period, until)),
        _ => tokio::spawn(take(group.clone(), until)),
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
}
