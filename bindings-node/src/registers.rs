//! A few cells of memory that the face and the addon share, for the three calls that must be fast.
//!
//! An argument costs more than the call itself, so these take none: the face writes what they need into
//! the cells and reads there what they found.

use std::cell::Cell;

use napi::bindgen_prelude::BigUint64Array;

/// Of a lease: number, fence, nonce, flags: whether the lease has a nonce (1), whether it is in doubt (2). Of what a limit
/// says: see [`crate::limit::take_of_limit`].
const COUNT: usize = 7;

thread_local! {
    /// The cells of this thread's environment.
    static CELLS: Cell<Option<&'static [Cell<u64>; COUNT]>> = const { Cell::new(None) };
}

/// The face lends the cells once, as it is loaded.
pub fn lend(cells: BigUint64Array) {
    // Leaked, so that the garbage collector leaves the memory where it is for as long as there are calls.
    let cells: &'static mut BigUint64Array = Box::leak(Box::new(cells));
    #[allow(unsafe_code, reason = "the face keeps the array to itself and never detaches it")]
    // SAFETY: the array is alive for ever, and only this thread touches it, one access at a time.
    let cells = Cell::from_mut(unsafe { cells.as_mut() }).as_slice_of_cells();
    CELLS.set(cells.first_chunk());
}

/// The number of the pool, the lease or the limit that is meant; 0 before the cells were lent.
pub fn number() -> u32 {
    CELLS.get().and_then(|cells| cells.first()).map_or(0, |cell| cell.get() as u32)
}

/// How much is meant, in the cell behind the number.
pub fn cost() -> f64 {
    CELLS.get().and_then(|cells| cells.get(1)).map_or(0.0, |cell| f64::from_bits(cell.get()))
}

/// Writes what was found, from the first cell on.
pub fn write<const N: usize>(values: [u64; N]) {
    for (cell, value) in CELLS.get().into_iter().flatten().zip(values) {
        cell.set(value);
    }
}
