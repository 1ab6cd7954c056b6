//! The words that the core says to users, and those that the types of JavaScript and Python know.

use std::fs;
use std::path::Path;

use leasehold::Code;
use leasehold::slots::{Mode, State};

/// The line of a file of this repository that begins so, and those behind it up to an empty one.
fn passage(file: &str, beginning: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = fs::read_to_string(path).expect("a file");
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with(beginning));
    let passage: String = lines.take_while(|line| !line.is_empty()).collect();
    assert!(!passage.is_empty(), "{file} has no line that begins with {beginning}");
    passage
}

fn knows(file: &str, beginning: &str, words: &[&str]) {
    let passage = passage(file, beginning);
    for word in words {
        assert!(passage.contains(&format!("\"{word}\"")), "{file} does not know the word {word}");
    }
}

// An inspected slot that was kept for a waiter was in a state that the types did not have.
#[test]
fn the_types_know_the_states_and_modes_of_slots() {
    let states = [State::Ready, State::Leased, State::Offered, State::Cooling, State::Out].map(State::as_str);
    // A slot that passes is made for a lease of a name, and is in no pool of users.
    let modes = [Mode::Enabled, Mode::Draining, Mode::Disabled, Mode::Removing].map(Mode::as_str);
    for file in ["bindings-javascript/pool.ts", "bindings-python/python/leasehold/views.py"] {
        knows(file, "state:", &states);
        knows(file, "mode:", &modes);
    }
}

#[test]
fn the_types_know_every_code_of_an_error() {
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    knows("bindings-javascript/errors.ts", "export type Code", &codes);
}
