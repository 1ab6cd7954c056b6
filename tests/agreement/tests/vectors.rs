//! The transcripts that every language replays: up to date, and replayed by the machine and by the script.

use std::collections::BTreeSet;

use leasehold::slots::transcript;
use leasehold_agreement::scenarios::{all, folder};
use leasehold_agreement::{Script, to_json, to_value};
use serde_json::Value as Json;

/// The name and the content of every transcript.
fn vectors() -> Vec<(String, Json)> {
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).expect("readable");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    let paths = std::fs::read_dir(folder()).expect("the folder").map(|entry| entry.expect("an entry").path());
    // Those of limits are beneath.
    let vectors: Vec<_> = paths.filter(|path| path.is_file()).map(read).collect();
    assert!(!vectors.is_empty());
    vectors
}

#[test]
fn they_are_what_the_scenarios_tell() {
    let kept: BTreeSet<_> = vectors().into_iter().map(|(name, _)| name).collect();
    let told: BTreeSet<_> = all().iter().map(|scenario| scenario.name().to_owned()).collect();
    assert_eq!(kept, told, "run: cargo run -p leasehold-agreement --bin vectors -- --write");
    for scenario in all() {
        let path = folder().join(format!("{}.json", scenario.name()));
        let kept = std::fs::read_to_string(path).expect("readable");
        let advice = "run: cargo run -p leasehold-agreement --bin vectors -- --write";
        assert!(kept == scenario.text(), "{} is not up to date; {advice}", scenario.name());
    }
}

#[test]
fn the_machine_replays_them() {
    for (name, vector) in vectors() {
        assert_eq!(vector["name"], name);
        let answers = transcript::replay(&to_value(&vector["steps"])).expect("steps");
        assert_eq!(to_json(&answers), vector["answers"], "{name}");
    }
}

#[test]
fn the_script_replays_them() {
    for (name, vector) in vectors() {
        let steps = transcript::read(&to_value(&vector["steps"])).expect("steps");
        let first = &steps[0];
        // The server tells the second in which it started; it started before that second's end.
        let mut script = Script::new(first.up_since.saturating_sub(1), 1);
        let mut incarnation = first.incarnation.clone();
        for (at, step) in steps.iter().enumerate() {
            script.set_wall(step.wall);
            if step.incarnation != incarnation {
                script.restart();
                incarnation.clone_from(&step.incarnation);
            }
            let (theirs, ours) = script.answers(0, &step.envelope);
            assert_eq!(theirs, ours, "{name}, step {at}");
            assert_eq!(to_json(&transcript::answer(&theirs)), vector["answers"][at], "{name}, step {at}");
        }
    }
}

#[test]
fn no_number_is_a_number() {
    fn check(json: &Json) {
        match json {
            Json::Number(number) => panic!("{number} is not text"),
            Json::Array(items) => items.iter().for_each(check),
            Json::Object(entries) => entries.values().for_each(check),
            _ => {}
        }
    }
    vectors().iter().for_each(|(_, vector)| check(vector));
}
