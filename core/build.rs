//! Prepares the script of the store in Redis: puts it together, leaves out its comments and indents, and finds the name
//! that Redis gives it.

use std::path::PathBuf;
use std::{env, fs, io};

use sha1_smol::Sha1;

const FOLDER: &str = "src/store/redis/slots";
/// The parts of the script, each of which knows those before it.
const PARTS: [&str; 9] = ["pool", "slot", "places", "draw", "claim", "line", "lease", "seldom", "envelope"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let parts = PARTS.map(|part| fs::read_to_string(format!("{FOLDER}/{part}.lua")));
    let source = parts.into_iter().collect::<io::Result<String>>()?;
    // Every line stays, if only as an empty one, so that what the server says of a line can be found in the source.
    let lines = source.lines().map(|line| {
        let line = line.trim_start();
        let end = if line.starts_with("--") { Some(0) } else { line.find(" -- ") };
        line.get(..end.unwrap_or(line.len())).unwrap_or_default()
    });
    let script: String = lines.flat_map(|line| [line, "\n"]).collect();
    let folder = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(folder.join("slots.sha1"), Sha1::from(&script).digest().to_string())?;
    fs::write(folder.join("slots.lua"), script)
}
