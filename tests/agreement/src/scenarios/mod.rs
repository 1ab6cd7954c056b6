//! Scenarios, in words: what every language must answer, kept as transcripts in `tests/vectors`.

mod accounts;
mod holding;
mod line;
mod scenario;
mod server;

pub use scenario::Scenario;

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
        line::line(),
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
        server::lost_pool(),
    ]
}

/// Where the transcripts are kept.
pub fn folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors")
}
