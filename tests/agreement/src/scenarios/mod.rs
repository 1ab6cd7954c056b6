//! Scenarios, in words: what every language must answer, kept as transcripts in `tests/vectors`.

use std::path::{Path, PathBuf};

mod accounts;
mod choosers;
mod holding;
mod kinds;
mod limits;
mod line;
mod losses;
mod purse;
mod renewals;
mod scenario;
mod server;
mod tally;
mod tokens;
mod waiters;
mod windows;

pub use purse::Purse;
pub use scenario::Scenario;
pub use tally::Tally;

/// Every scenario, by topic.
pub fn all() -> Vec<Scenario> {
    vec![
        holding::leases(),
        holding::losses(),
        holding::choices(),
        holding::refusals(),
        holding::waiting(),
        holding::names(),
        holding::free_names(),
        choosers::choosers(),
        choosers::choosers_of_several(),
        line::line(),
        line::enough_for_all(),
        line::silent_process(),
        line::lines_of_names(),
        line::stealing(),
        accounts::nonces(),
        accounts::digits(),
        accounts::doubt(),
        accounts::roster(),
        accounts::administration(),
        server::lanes(),
        server::memory(),
        server::clock(),
        server::standing_clock(),
        server::young_server(),
        server::known_loss(),
        server::lost_pool(),
        server::pool_begun_anew(),
        server::pool_begun_anew_long_ago(),
    ]
}

/// Every scenario of limits.
pub fn of_limits() -> Vec<Tally> {
    vec![
        kinds::refill(),
        kinds::rates_below_a_millisecond(),
        kinds::bursts(),
        kinds::rolling(),
        windows::windows(),
        kinds::lifetime(),
        kinds::budgets(),
        kinds::each(),
        kinds::in_flight(),
        waiters::waiters(),
        limits::groups(),
        limits::reservations(),
        renewals::renewals(),
        limits::changes(),
        limits::clocks(),
        limits::lanes(),
        limits::give_backs(),
        losses::standings(),
        losses::servers(),
    ]
}

/// Every scenario of selections.
pub fn of_tokens() -> Vec<Purse> {
    vec![
        tokens::verdicts(),
        tokens::contention(),
        tokens::sources(),
        tokens::walks(),
        tokens::amounts(),
        tokens::strategies(),
    ]
}

/// Where the transcripts are kept.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors")
}

/// Where those of limits are kept.
pub fn folder_of_limits() -> PathBuf {
    folder().join("limits")
}

/// Where those of selections are kept.
pub fn folder_of_tokens() -> PathBuf {
    folder().join("tokens")
}

/// The file of every transcript, and its text.
pub fn files() -> Vec<(PathBuf, String)> {
    let pools = all().into_iter().map(|told| (folder().join(format!("{}.json", told.name())), told.text()));
    let limits = of_limits()
        .into_iter()
        .map(|told| (folder_of_limits().join(format!("{}.json", told.name())), told.text()));
    let tokens = of_tokens()
        .into_iter()
        .map(|told| (folder_of_tokens().join(format!("{}.json", told.name())), told.text()));
    pools.chain(limits).chain(tokens).collect()
}
