//! A process of many callers that take of a rate, as often as they are allowed, and of a lifetime with it.
//!
//! `taker URL KIND MAX PERIOD_MS CALLERS TIME_MS`. Each take that is allowed is a line: when it was sent and when it was
//! answered, in microseconds of a clock that all processes of the machine share. Times in between are the store's.

use std::io::Write;
use std::time::Duration;

use leasehold::client::{LimitKind, LimitOptions, Runtime, TokioRuntime};
use leasehold::{MILLISECOND, NativeLimit};
use leasehold_faults::handle_with;

async fn take(limit: NativeLimit, until: u64) {
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    while runtime.now() < until {
        let sent = runtime.now();
        if limit.increment(1u64).await.expect("the store answers") {
            let answered = runtime.now();
            let mut out = std::io::stdout().lock();
            writeln!(out, "{sent} {answered}").expect("somebody reads");
        } else {
            tokio::time::sleep(Duration::from_micros(500)).await;
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
    let period = number(period) * MILLISECOND;
    let kind = match kind.as_str() {
        "gcra" => LimitKind::Gcra,
        "rolling" => LimitKind::Rolling,
        "lifetime" => LimitKind::Lifetime,
        _ => LimitKind::Refill,
    };
    let rate =
        handle.limit_with("rate", &LimitOptions::new(number(max), period).kind(kind)).expect("a limit");
    let all = LimitOptions::new(u64::MAX, 0).kind(LimitKind::Lifetime);
    let all = handle.limit_with("all", &all).expect("a limit");
    let group = handle.group([Some(&rate), Some(&all)]).expect("a group");
    let until = TokioRuntime::new(tokio::runtime::Handle::current()).now() + number(time) * MILLISECOND;
    let callers = (0..number(callers)).map(|_| tokio::spawn(take(group.clone(), until)));
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
}
