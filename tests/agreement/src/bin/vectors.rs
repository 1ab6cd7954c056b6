//! Tells whether the transcripts in `tests/vectors` are what the scenarios tell; with `--write`, makes them so.

use leasehold_agreement::scenarios::files;

fn main() -> std::io::Result<()> {
    let write = std::env::args().any(|argument| argument == "--write");
    for (path, text) in files() {
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let state = match (kept == text, write) {
            (true, _) => "up to date",
            (false, false) => "not up to date",
            (false, true) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                std::fs::write(&path, text)?;
                "written"
            }
        };
        println!("{}: {state}", path.file_stem().unwrap_or_default().display());
    }
    Ok(())
}
