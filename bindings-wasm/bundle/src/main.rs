//! Binds the compiled module to JavaScript: `leasehold-wasm-bundle <module.wasm> <folder>`.
//!
//! What `wasm-bindgen`'s own program does, as a crate, so that `Cargo.lock` pins it with the macro.

use std::collections::BTreeMap;
use std::env::args;
use std::error::Error;
use std::fs;
use std::path::Path;

use wasm_bindgen_cli_support::{Bindgen, Output};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = args().skip(1);
    let (Some(module), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: leasehold-wasm-bundle <module.wasm> <folder>".into());
    };
    let mut bound = Bindgen::new()
        .input_path(module)
        .out_name("leasehold")
        .web(true)?
        .typescript(true)
        // The face says where the module is: each runtime has its own way.
        .omit_default_module_path(true)
        // After a trap the instance is broken; the face has it built anew.
        .reset_state_function(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate_output()?;
    let names = shorten(&mut bound)?;
    bound.emit(&folder)?;
    let glue = Path::new(&folder).join("leasehold.js");
    let text = names.iter().fold(fs::read_to_string(&glue)?, |text, (short, name)| text.replace(name, short));
    Ok(fs::write(glue, text)?)
}

/// Takes from the imports' names what all have, and the digests that keep apart those of several versions of a crate, and
/// compress to nothing less. Gives the former name of each.
fn shorten(bound: &mut Output) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let mut names = BTreeMap::new();
    for import in bound.wasm_mut().imports.iter_mut() {
        let is_digest = |tail: &str| tail.len() == 16 && tail.bytes().all(|digit| digit.is_ascii_hexdigit());
        let Some((short, _)) = import.name.rsplit_once('_').filter(|(_, tail)| is_digest(tail)) else {
            continue;
        };
        let (short, name) = (short.trim_start_matches("__wbg_").to_owned(), import.name.clone());
        // They are numbers, and no digests.
        if short == "__wbindgen_generic" {
            continue;
        }
        import.name = short.clone();
        if let Some(other) = names.insert(short, name) {
            return Err(format!("two imports would have one name: {other}").into());
        }
    }
    Ok(names)
}
