//! A process that selects tokens, tells which, and does nothing more.
//!
//! `spender URL TARGET TTL_MS` selects of the tokens `t0` to `t99`, worth 1 each, prints their ids, and waits for the end
//! of its input.

use std::io::{Read, Write};

use leasehold_faults::{handle, tokens_of_one};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, target, ttl] = words.as_slice() else { panic!("spender URL TARGET TTL_MS") };
    let ttl = ttl.parse::<u64>().expect("milliseconds") * 1_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let target: u64 = target.parse().expect("an amount");
    let selection = runtime.block_on(async {
        let tokens = tokens_of_one(&handle(url), 100, ttl);
        tokens.select_with(target, Default::default()).await.expect("tokens")
    });
    let ids: Vec<&str> = selection.tokens().iter().map(|token| &*token.id).collect();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", ids.join(" ")).and_then(|()| out.flush()).expect("somebody reads");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("an end");
}
