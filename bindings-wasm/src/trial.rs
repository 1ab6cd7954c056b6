//! Exports for the tests only: one of each kind that the real API has, able to panic.

use std::cell::RefCell;

use js_sys::{Array, Function, Promise};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::failure::Failure;
use crate::host;
use crate::tasks::{promise, settled, sleep, spawn};
use crate::value::Value;

thread_local! {
    static STATE: RefCell<u32> = const { RefCell::new(0) };
    static THINGS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// There and back.
#[wasm_bindgen]
pub fn echo(value: &JsValue) -> Result<JsValue, JsValue> {
    Ok(Value::try_from(value)?.into())
}

#[wasm_bindgen]
pub fn fail() -> Result<u32, JsValue> {
    Err(Failure::new("busy", "ask again in 5 ms").into())
}

/// Panics while its state is borrowed.
#[wasm_bindgen(js_name = panicSync)]
pub fn panic_sync() -> u32 {
    STATE.with_borrow_mut(|_| panic!("on purpose"))
}

/// Works only if the state is not borrowed.
#[wasm_bindgen]
pub fn count() -> u32 {
    STATE.with_borrow_mut(|count| {
        *count += 1;
        *count
    })
}

#[wasm_bindgen(js_name = panicAsync)]
pub fn panic_async() -> Promise {
    promise(async {
        sleep(1.0, false).await;
        panic_sync();
        Ok(1)
    })
}

#[wasm_bindgen(js_name = panicTask)]
pub fn panic_task() {
    spawn(async {
        sleep(1.0, false).await;
        panic_sync();
    });
}

/// A trap that is not a panic.
#[wasm_bindgen]
#[allow(unconditional_recursion, reason = "it is what the test is about")]
pub fn overflow(depth: u32) -> u32 {
    let mut bytes = [depth; 256];
    std::hint::black_box(&mut bytes);
    overflow(depth + 1) + bytes[7]
}

#[wasm_bindgen]
pub fn wait(milliseconds: f64, background: bool) -> Promise {
    promise(async move {
        if milliseconds < 0.0 {
            return Err(Failure::new("timed_out", "no slot became free"));
        }
        let start = host::now();
        sleep(milliseconds, background).await;
        Ok(host::now() - start)
    })
}

/// `transport.send(args: string[]) => Promise<…>`: what a store elsewhere is asked through.
#[wasm_bindgen]
pub fn send(transport: Function, words: Vec<String>) -> Promise {
    promise(async move {
        let words: Array = words.into_iter().map(JsValue::from).collect();
        let reply = match transport.call1(&JsValue::UNDEFINED, &words) {
            Ok(reply) => settled(&reply).await,
            Err(exception) => Err(exception),
        };
        let reply = reply.map_err(|exception| {
            let error = exception.dyn_ref::<js_sys::Error>();
            let words = error.map_or_else(|| format!("{exception:?}"), |error| error.message().into());
            Failure::new("store_unavailable", format!("the transport failed: {words}"))
        })?;
        Value::try_from(&reply)
    })
}

#[wasm_bindgen]
pub fn random() -> Result<Vec<u8>, JsValue> {
    let mut bytes = [0; 16];
    host::entropy(&mut bytes).map_err(Failure::Passed)?;
    Ok(bytes.to_vec())
}

#[wasm_bindgen]
pub fn now() -> f64 {
    host::now()
}

/// A thing that lives in the instance, by its number.
#[wasm_bindgen]
pub fn open() -> u32 {
    THINGS.with_borrow_mut(|things| {
        things.push(0);
        things.len() as u32 - 1
    })
}

#[wasm_bindgen]
pub fn dig(number: u32, panics: bool) -> Result<u32, JsValue> {
    THINGS.with_borrow_mut(|things| {
        let thing = things.get_mut(number as usize).ok_or_else(|| Failure::new("lost", "open it anew"))?;
        *thing += 1;
        assert!(!panics, "on purpose");
        Ok(*thing)
    })
}
