//! Binds the compiled module to JavaScript: `leasehold-wasm-bundle <module.wasm> <folder>`.
//!
//! What `wasm-bindgen`'s own program does, as a crate, so that `Cargo.lock` pins it with the macro.

mod names;

use std::env::args;
use std::error::Error;
use std::fs;
use std::path::Path;

use wasm_bindgen_cli_support::Bindgen;

use self::names::Names;

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
    let names = Names::shorten(&mut bound);
    bound.emit(&folder)?;
    for file in ["leasehold.js", "leasehold.d.ts"] {
        let path = Path::new(&folder).join(file);
        fs::write(&path, names.tell(&fs::read_to_string(&path)?))?;
    }
    Ok(())
}
