//! What a caller that waits left to be asked for as it is called. It travels with what is given back: were the caller woken first, its
//! claim might miss that envelope, or another be called for a slot that it was called for already.

use futures_channel::oneshot;

use crate::Micros;
use crate::client::pool::courier::{Delivered, Delivery};
use crate::error::Result;
use crate::slots::Claim;

/// A claim that is made if its caller is called.
#[derive(Debug)]
pub(in crate::client) struct Standing {
    pub claim: Claim,
    /// Since when it waits.
    pub began: Micros,
    /// Until when.
    pub deadline: Micros,
}

/// A claim on its way to the store.
#[derive(Debug)]
pub(in crate::client) struct Asks {
    pub standing: Box<Standing>,
    pub caller: oneshot::Sender<Result<Delivered>>,
}

impl Asks {
    pub(super) fn new(standing: Box<Standing>) -> (Self, Delivery) {
        let (caller, answer) = oneshot::channel();
        (Asks { standing, caller }, answer)
    }
}
