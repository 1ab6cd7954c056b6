//! Things that live here and are numbers in the face.

use std::cell::RefCell;

use wasm_bindgen::UnwrapThrowExt;

use crate::host;

/// Things of one kind. A number is given again once it was freed, so whoever has it forgets it then.
pub struct Shelf<T>(RefCell<Places<T>>);

struct Places<T> {
    things: Vec<Option<T>>,
    free: Vec<u32>,
    /// The number of the first. Above those of the instance before: an answer of that may be on its way to its caller yet.
    first: u32,
}

impl<T> Shelf<T> {
    pub const fn new() -> Self {
        Shelf(RefCell::new(Places { things: Vec::new(), free: Vec::new(), first: 0 }))
    }

    pub fn put(&self, thing: T) -> u32 {
        let mut places = self.0.borrow_mut();
        if let Some(number) = places.free.pop() {
            *places.at(number).unwrap_throw() = Some(thing);
            return number;
        }
        if places.things.is_empty() {
            places.first = host::new_number();
        }
        places.things.push(Some(thing));
        places.first + places.things.len() as u32 - 1
    }

    /// How many numbers are in use.
    #[cfg(feature = "trial")]
    pub fn len(&self) -> u32 {
        let places = self.0.borrow();
        (places.things.len() - places.free.len()) as u32
    }

    /// Takes the thing down, if it is there; its number stays its own until it is laid back or freed.
    pub fn lift(&self, number: u32) -> Option<T> {
        self.0.borrow_mut().at(number)?.take()
    }

    /// Puts a thing back that was lifted.
    pub fn lay(&self, number: u32, thing: T) {
        *self.0.borrow_mut().at(number).unwrap_throw() = Some(thing);
    }

    /// Gives up the number of a thing that was lifted.
    pub fn free(&self, number: u32) {
        self.0.borrow_mut().free.push(number);
    }

    /// Takes the thing down for good, if it is there.
    pub fn take(&self, number: u32) -> Option<T> {
        let thing = self.lift(number)?;
        self.free(number);
        Some(thing)
    }
}

impl<T> Places<T> {
    fn at(&mut self, number: u32) -> Option<&mut Option<T>> {
        self.things.get_mut(number.wrapping_sub(self.first) as usize)
    }
}

impl<T: Clone> Shelf<T> {
    pub fn get(&self, number: u32) -> Option<T> {
        self.0.borrow_mut().at(number)?.clone()
    }
}
