//! Prepares the scripts of the store in Redis: puts each together, leaves out its comments and indents, writes out its
//! constants, and finds the name that Redis gives it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs, io};

use sha1_smol::Sha1;

/// Each script: its folder, and its parts, each of which knows those before it. A line `--@ lane/recall` stands for that part, which
/// both scripts have.
const SCRIPTS: [(&str, &[&str]); 2] = [
    (
        "slots",
        &[
            "pool", "slot", "places", "grant", "alone", "draw", "stealing", "line", "due", "envelope",
            "claim", "lease", "seldom", "reply",
        ],
    ),
    ("limits", &["ledger", "refill", "cells", "sums", "recall", "spend", "verdict"]),
];

fn main() -> io::Result<()> {
    SCRIPTS.iter().try_for_each(|(name, parts)| prepare(name, parts))
}

fn prepare(name: &str, parts: &[&str]) -> io::Result<()> {
    let parts = parts.iter().map(|part| read(&format!("{name}/{part}")));
    let mut source = parts.collect::<io::Result<String>>()?;
    for part in ["lane/recall", "lane/keep", "server/less", "server/replication"] {
        let mark = format!("--@ {part}\n");
        assert_eq!(source.matches(&mark).count(), 1, "{name} has one {part}");
        source = source.replace(&mark, &read(part)?);
    }
    assert!(!source.contains("--@"), "each part is there");
    let mut constants = BTreeMap::new();
    // Every line stays, if only as an empty one, so that what the server says of a line can be found in the source.
    let lines = source.lines().map(|line| {
        let line = line.trim_start();
        let end = if line.starts_with("--") { Some(0) } else { line.find(" -- ") };
        write_out(line.get(..end.unwrap_or(line.len())).unwrap_or_default(), &mut constants)
    });
    let script: String = lines.flat_map(|line| [line, "\n".to_owned()]).collect();
    let folder = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(folder.join(format!("{name}.sha1")), Sha1::from(&script).digest().to_string())?;
    fs::write(folder.join(format!("{name}.lua")), script)
}

fn read(part: &str) -> io::Result<String> {
    let path = format!("src/store/redis/{part}.lua");
    println!("cargo::rerun-if-changed={path}");
    Ok(fs::read_to_string(path)?.replace("\r\n", "\n"))
}

/// A line with the values of the constants in it; one that only declares constants (`local ONE, TWO = 1, 2`) is left
/// out. A variable costs every call of the script more: each function searches for those that it takes from outside.
fn write_out<'a>(line: &'a str, constants: &mut BTreeMap<&'a str, &'a str>) -> String {
    let part_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let declared = line.strip_prefix("local ").and_then(|rest| rest.split_once(" = "));
    if let Some((names, values)) = declared
        && !names.contains(|letter: char| letter.is_ascii_lowercase())
    {
        let (names, values) = (names.split(", "), values.split(", "));
        assert_eq!(names.clone().count(), values.clone().count(), "a value for each of: {line}");
        for (name, value) in names.zip(values) {
            assert_eq!(constants.insert(name, value), None, "{name} stands for one thing");
        }
        return String::new();
    }
    let mut script = String::new();
    // Every second piece is a text.
    for (at, piece) in line.split_inclusive('\'').enumerate() {
        let words = piece.split_inclusive(|letter| !part_of_name(letter));
        script.extend(words.map(|word| {
            let name = word.trim_end_matches(|letter| !part_of_name(letter));
            let value = if at % 2 == 0 { constants.get(name) } else { None };
            value.map_or_else(|| word.to_owned(), |value| word.replace(name, value))
        }));
    }
    script
}
