//! What calls that wait for a store give.

use std::sync::Arc;

use leasehold::value::Value;
use napi::bindgen_prelude::{Array, BigInt, ToNapiValue, sys};
use napi::{Env, Result};

use crate::leasehold::UNIT;
use crate::selection::words_of;
use crate::table::{NativeLease, NativeLocked, NativeReservation, NativeSelection, number};
use crate::value::Out;

/// What a call gives.
pub enum Granted {
    /// Of each lease its number, slot, fence, nonce, and whether that is in doubt.
    Leases(Vec<NativeLease>),
    /// Of a lock its number and its fence.
    Lock(NativeLocked),
    /// Of a reservation its number, and what its limits said.
    Reservation(NativeReservation),
    /// Of a selection its number, and its words.
    Selection(NativeSelection),
    /// What is held by nobody.
    Value(Value),
}

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; only its own functions are called here")]
impl ToNapiValue for Granted {
    unsafe fn to_napi_value(env: sys::napi_env, granted: Self) -> Result<sys::napi_value> {
        if let Granted::Value(value) = granted {
            // SAFETY: as below.
            return unsafe { Out::to_napi_value(env, Out(value)) };
        }
        let wrapped = Env::from_raw(env);
        let mut words = wrapped.create_array(0)?;
        match granted {
            Granted::Leases(leases) => {
                for (lease, at) in leases.into_iter().zip((0..).step_by(WORDS)) {
                    words.set(at + 1, lease.slot())?;
                    words.set(at + 2, BigInt::from(lease.fence()))?;
                    words.set(at + 3, lease.nonce().map(BigInt::from))?;
                    words.set(at + 4, lease.in_doubt())?;
                    words.set(at, number(Arc::new(lease)))?;
                }
            }
            Granted::Lock(locked) => {
                words.set(1, BigInt::from(locked.fence()))?;
                words.set(0, number(Arc::new(locked)))?;
            }
            Granted::Reservation(reservation) => {
                words.set(1, Out(reservation.to_value(UNIT)))?;
                words.set(0, number(Arc::new(reservation)))?;
            }
            Granted::Selection(selection) => {
                for (word, at) in words_of(&selection).into_iter().zip(1..) {
                    words.set(at, Out(word))?;
                }
                words.set(0, number(Arc::new(selection)))?;
            }
            Granted::Value(_) => {}
        }
        // SAFETY: the value is made in the environment of this call.
        unsafe { Array::to_napi_value(env, words) }
    }
}

/// How many say what a lease is.
const WORDS: usize = 5;
