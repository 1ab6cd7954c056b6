//! The names of slots as JavaScript's own, because to make one takes long.

use wasm_bindgen::JsValue;

const PLACES: usize = 1 << 13;

/// Each name is in the place that its letters give; of those that share one, the last.
pub struct Names(Vec<Option<Name>>);

struct Name {
    text: Box<str>,
    value: JsValue,
}

impl Names {
    pub const fn new() -> Self {
        Names(Vec::new())
    }

    pub fn value(&mut self, text: &str) -> &JsValue {
        self.0.resize_with(PLACES, || None);
        let place = &mut self.0[place_of(text)];
        let known = place.take().filter(|name| *name.text == *text);
        let name = known.unwrap_or_else(|| Name { text: text.into(), value: text.into() });
        &place.insert(name).value
    }
}

fn place_of(text: &str) -> usize {
    text.bytes().fold(0, |sum: usize, letter| sum.wrapping_mul(31).wrapping_add(letter.into())) % PLACES
}
