//! Tells whether the transcripts in `tests/vectors` are what the scenarios tell; with `--write`, makes them so.

use leasehold_agreement::scenarios::{all, folder};

fn main() -> std::io::Result<()> {
    let write = std::env::args().any(|argument| argument == "--write");
    for scenario in all() {
        let path = folder().join(format!("{}.json", scenario.name()));
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let state = match (kept == scenario.text(), write) {
            (true, _) => "up to date",
            (false, false) => "not up to date",
            (false, true) => {
                std::fs::write(&path, scenario.text())?;
                "written"
            }
        };
        println!("{}: {state}", scenario.name());
    }
    Ok(())
}
