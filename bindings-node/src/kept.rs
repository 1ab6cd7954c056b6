//! State of a thread that ends outside every guard.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Holds state whose own `Drop` runs code that could panic: Node drops it with its environment, where a panic would end the process.
pub struct Kept<T>(ManuallyDrop<T>);

impl<T> Kept<T> {
    pub fn new(state: T) -> Self {
        Kept(ManuallyDrop::new(state))
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Kept<T> {
    #[allow(unsafe_code, reason = "the one place where the state is dropped, and it is not used after")]
    fn drop(&mut self) {
        // SAFETY: `drop` runs once and `self.0` is never touched again.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { ManuallyDrop::drop(&mut self.0) }));
        if let Err(payload) = dropped {
            // The payload may panic too when it is dropped; a leak of a few bytes is the lesser evil.
            std::mem::forget(payload);
        }
    }
}
