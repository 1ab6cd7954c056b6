//! What a module and its glue call each other's functions: one letter says as much as a name, and packs better.

use std::collections::HashMap;

use wasm_bindgen_cli_support::Output;

/// What the glue itself hands the module, and what it hands on of the face: under these names, and under these shorter ones.
const GLUE: (&str, &str) = ("./leasehold_bg.js", "glue");
const HOST: (&str, &str) = ("../host.js", "host");

/// The short names, by the long ones.
pub struct Names {
    imports: HashMap<String, String>,
    /// Of those that are there no more, none.
    exports: HashMap<String, Option<String>>,
}

impl Names {
    /// Gives a module's imports and exports short names, and takes away what no glue asks it for. What the face exports keeps its
    /// name.
    pub fn shorten(bound: &mut Output) -> Self {
        let glue =
            [Some(bound.js()), bound.start().map(String::as_str)].into_iter().flatten().collect::<String>();
        assert!(!glue.contains("wasm["), "the glue asks for exports in a way that is not known here");
        let asked: Vec<&str> = glue.split("wasm.").skip(1).map(|rest| word(rest).0).collect();
        let (mut imports, mut exports) = (HashMap::new(), HashMap::new());
        let module = bound.wasm_mut();
        for import in module.imports.iter_mut() {
            if import.module == GLUE.0 {
                let short = letters(imports.len());
                imports.insert(std::mem::replace(&mut import.name, short.clone()), short);
            }
            if let Some((_, short)) = [GLUE, HOST].into_iter().find(|(long, _)| *long == import.module) {
                import.module = short.to_owned();
            }
        }
        let mut others = Vec::new();
        for export in module.exports.iter_mut() {
            if asked.contains(&&*export.name) {
                let short = letters(exports.len());
                exports.insert(std::mem::replace(&mut export.name, short.clone()), Some(short));
            } else {
                exports.insert(export.name.clone(), None);
                others.push(export.id());
            }
        }
        others.into_iter().for_each(|export| module.exports.delete(export));
        Names { imports, exports }
    }

    /// The glue's text, or that of its types, with the short names.
    pub fn tell(&self, text: &str) -> String {
        let mut told = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
            told = told + indent + &self.line(rest);
        }
        told
    }

    /// One line, without its indent.
    fn line(&self, line: &str) -> String {
        let (name, rest) = word(line);
        if let Some(short) = self.imports.get(name).filter(|_| rest.starts_with(": function(")) {
            return self.asking(&format!("{short}{rest}"));
        }
        if let Some((name, rest)) = line.strip_prefix("readonly ").map(word)
            && let Some(short) = self.exports.get(name)
        {
            return short.as_ref().map_or(String::new(), |short| format!("readonly {short}{rest}"));
        }
        let module = [GLUE, HOST].into_iter().find_map(|(long, short)| {
            let rest = line.strip_prefix(&format!("\"{long}\": import"))?;
            Some(format!("\"{short}\": import{rest}"))
        });
        module.unwrap_or_else(|| self.asking(line))
    }

    /// What asks for the module's exports.
    fn asking(&self, text: &str) -> String {
        let mut pieces = text.split("wasm.");
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |told, piece| {
            let (name, rest) = word(piece);
            told + "wasm." + self.exports.get(name).and_then(Option::as_deref).unwrap_or(name) + rest
        })
    }
}

/// The name at the start of a text, and what follows.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(text.len()))
}

/// a to z, then ba, bb and so on.
fn letters(number: usize) -> String {
    let last = char::from(b'a' + (number % 26) as u8);
    if number < 26 { last.to_string() } else { letters(number / 26) + &last.to_string() }
}
