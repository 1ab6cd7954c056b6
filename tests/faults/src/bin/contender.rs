//! A process of many callers that contend for one prize, each of them once.
//!
//! `contender URL PRIZE CALLERS GATE HOLD_MS`; the prize is `slot` or the name of a lock; of several URLs, with commas
//! between them, a majority grants it. Who wins it passes the gate: a
//! file whose lock the system keeps, and gives up with the process, and where it leaves its fence. Then it prints `inside FENCE`, or `intruder FENCE`
//! if somebody else is there, and after it has held the prize and given it back `served FENCE`, or `late FENCE` if the
//! prize was lost meanwhile, or `untold FENCE` if the store could not be told, or `failed CODE`.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use leasehold::Code;
use leasehold_faults::{Prize, handle};

fn say(what: &str, of: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what} {of}").and_then(|()| out.flush()).expect("somebody reads");
}

async fn contend(prize: Prize, gate: String, hold: Duration) {
    let won = match prize.win().await {
        Ok(won) => won,
        Err(error) => return say("failed", error.code().as_str()),
    };
    let fence = won.fence();
    // Every opening of a file has a lock of its own, even within a process.
    let mut passage = File::options().append(true).open(gate).expect("the gate is there");
    match passage.try_lock() {
        Ok(()) => {
            writeln!(passage, "{fence}").expect("it is left there");
            say("inside", fence);
        }
        Err(_) => say("intruder", fence),
    }
    tokio::time::sleep(hold).await;
    let held = won.is_held();
    passage.unlock().expect("left");
    match won.give_back().await {
        Ok(()) if held => say("served", fence),
        // It was held to the end, and a server did not answer to that.
        Err(error) if held && error.code() == Code::StoreUnavailable => say("untold", fence),
        _ => say("late", fence),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, prize, callers, gate, hold] = words.as_slice() else {
        panic!("contender URL PRIZE CALLERS GATE HOLD_MS")
    };
    let urls: Vec<&str> = url.split(',').collect();
    let prize = match *urls {
        [url] => Prize::of(prize, &handle(url)).await,
        _ => Prize::voted(&urls, prize),
    };
    let hold = Duration::from_millis(hold.parse().expect("milliseconds"));
    let callers: Vec<_> = (0..callers.parse().expect("a number"))
        .map(|_| tokio::spawn(contend(prize.clone(), gate.clone(), hold)))
        .collect();
    for caller in callers {
        caller.await.expect("no panic");
    }
}
