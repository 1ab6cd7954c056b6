//! A Redis that is reached through functions of the host.

use std::cell::RefCell;

use js_sys::{Array, BigInt};
use leasehold::store::redis::{Resp, Transport, TransportError, heard};
use leasehold::store::{Listener, Watch};
use leasehold::{MILLISECOND, Micros};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::tasks::settled;
use crate::{entered, host};

/// The face's object with `send` and perhaps `subscribe`.
#[derive(Clone)]
pub struct HostTransport(pub JsValue);

/// Deeper than any reply.
const MAX_DEPTH: usize = 8;

impl Transport for HostTransport {
    async fn send(&self, command: Vec<String>) -> Result<Resp, TransportError> {
        let command: Array = command.into_iter().map(JsValue::from).collect();
        match settled(&host::send(&self.0, &command)).await {
            Ok(answer) => {
                let answer: Array = answer.unchecked_into();
                let reply = read(&answer.get(1), MAX_DEPTH);
                let reply = reply.ok_or_else(|| {
                    let words = "the transport gave no string, integer, null or array of these";
                    TransportError::NoReply(words.to_owned())
                })?;
                Ok(match (answer.get(0).is_truthy(), reply) {
                    (true, Resp::Text(text)) => Resp::Error(text),
                    (_, reply) => reply,
                })
            }
            Err(rejection) => {
                let rejection: Array = rejection.unchecked_into();
                let words = rejection.get(1).as_string().unwrap_or_default();
                Err(if rejection.get(0).is_truthy() {
                    TransportError::NoReply(words)
                } else {
                    TransportError::NotSent(words)
                })
            }
        }
    }

    fn script(&self, digest: &str) -> String {
        host::script(digest)
    }

    fn lag(&self) -> Micros {
        Micros::from(host::lag(&self.0)) * MILLISECOND
    }

    async fn subscribe(&self, channel: String, listener: Listener) -> Result<Option<Watch>, TransportError> {
        let subscription = Subscription(host::new_number());
        LISTENERS.with_borrow_mut(|listeners| listeners.push((subscription.0, listener)));
        match settled(&host::subscribe(subscription.0, &self.0, &channel)).await {
            Ok(done) => Ok(done.is_truthy().then(|| Watch::new(subscription))),
            Err(words) => Err(TransportError::NotSent(words.as_string().unwrap_or_default())),
        }
    }
}

/// Tells of a message of a channel. Called by the face.
#[wasm_bindgen]
pub fn message(number: u32, text: &str) {
    entered();
    let listener = LISTENERS.with_borrow(|listeners| listeners.iter().find(|(of, _)| *of == number).cloned());
    if let Some((_, listener)) = listener {
        listener(heard(text).as_ref());
    }
}

thread_local! {
    static LISTENERS: RefCell<Vec<(u32, Listener)>> = const { RefCell::new(Vec::new()) };
}

/// Ends when it is dropped.
struct Subscription(u32);

impl Drop for Subscription {
    fn drop(&mut self) {
        LISTENERS.with_borrow_mut(|listeners| listeners.retain(|(of, _)| *of != self.0));
        host::unsubscribe(self.0);
    }
}

fn read(value: &JsValue, depth: usize) -> Option<Resp> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.is_null() || value.is_undefined() {
        Some(Resp::Nil)
    } else if let Some(text) = value.as_string() {
        Some(Resp::Text(text))
    } else if let Some(number) = value.as_f64() {
        (number.fract() == 0.0 && number.abs() < EXACT).then_some(Resp::Integer(number as i64))
    } else if let Some(integer) = value.dyn_ref::<BigInt>() {
        i64::try_from(integer.clone()).ok().map(Resp::Integer)
    } else {
        let list = value.dyn_ref::<Array>().filter(|_| depth > 0)?;
        let mut items = Vec::new();
        for item in list.iter() {
            items.push(read(&item, depth - 1)?);
        }
        Some(Resp::List(items))
    }
}
