//! Exports for the tests only: one of each kind that the real API has, able to panic.

use std::cell::{Cell, RefCell};

use leasehold::Code;
use leasehold::store::redis::{Resp, Transport, TransportError};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::host;
use crate::tasks::{Answer, call, sleep, spawn};
use crate::transport::HostTransport;
use crate::value;

thread_local! {
    static STATE: RefCell<u32> = const { RefCell::new(0) };
    static THINGS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

/// Lets the next export panic that is called.
#[wasm_bindgen]
pub fn arm() {
    ARMED.set(true);
}

/// Called first by every export that packages carry.
pub fn entered() {
    assert!(!ARMED.take(), "on purpose");
}

/// There and back.
#[wasm_bindgen]
pub fn echo(value: &JsValue) -> Result<JsValue, JsValue> {
    Ok(value::write(value::read(value).map_err(|failure| failure.within("value"))?))
}

#[wasm_bindgen]
pub fn fail() -> Result<u32, JsValue> {
    Err(Failure::new(Code::Busy, "ask again in 5 ms").into())
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
pub fn panic_async(number: u32) -> u32 {
    call(
        number,
        Box::pin(async {
            sleep(1.0).await;
            panic_sync();
            Ok(Answer::Nothing)
        }),
    )
}

#[wasm_bindgen(js_name = panicTask)]
pub fn panic_task() {
    spawn(async {
        sleep(1.0).await;
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
pub fn wait(milliseconds: f64, number: u32) -> u32 {
    call(
        number,
        Box::pin(async move {
            if milliseconds < 0.0 {
                return Err(Failure::new(Code::TimedOut, "no slot became free"));
            }
            let start = host::now();
            sleep(milliseconds).await;
            Ok(Answer::Value((host::now() - start).into()))
        }),
    )
}

/// How many tasks have not ended.
#[wasm_bindgen(js_name = underWay)]
pub fn under_way() -> u32 {
    crate::tasks::under_way()
}

/// How many things the face has by number.
#[wasm_bindgen]
pub fn things() -> u32 {
    crate::things::count()
}

/// A task that sleeps, and that nobody waits for.
#[wasm_bindgen]
pub fn background(milliseconds: f64) {
    spawn(sleep(milliseconds));
}

/// Asks a transport, as a store elsewhere is asked.
#[wasm_bindgen]
pub fn send(transport: JsValue, words: Vec<String>, number: u32) -> u32 {
    call(
        number,
        Box::pin(async move {
            match HostTransport(transport).send(words).await {
                Ok(reply) => Ok(Answer::Value(shown(&reply).into())),
                Err(TransportError::NoReply(words)) => {
                    Err(Failure::new(Code::StoreUnavailable, format!("no reply: {words}")))
                }
                Err(TransportError::NotSent(words)) => {
                    Err(Failure::new(Code::StoreUnavailable, format!("not sent: {words}")))
                }
            }
        }),
    )
}

fn shown(reply: &Resp) -> String {
    match reply {
        Resp::Nil => "nil".into(),
        Resp::Integer(number) => number.to_string(),
        Resp::Text(text) => format!("text {text}"),
        Resp::Error(text) => format!("error {text}"),
        Resp::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
    }
}

/// Performs a transcript's steps.
#[wasm_bindgen]
pub fn replay(steps: &JsValue) -> Result<JsValue, JsValue> {
    let answers = leasehold::slots::transcript::replay(&value::read(steps)?).map_err(Failure::from)?;
    Ok(value::write(answers))
}

/// Performs the steps of a transcript of limits.
#[wasm_bindgen(js_name = replayLimits)]
pub fn replay_limits(steps: &JsValue) -> Result<JsValue, JsValue> {
    let answers = leasehold::limits::transcript::replay(&value::read(steps)?).map_err(Failure::from)?;
    Ok(value::write(answers))
}

/// Performs the steps of a transcript of selections.
#[wasm_bindgen(js_name = replayTokens)]
pub fn replay_tokens(steps: &JsValue) -> Result<JsValue, JsValue> {
    let answers = leasehold::tokens::transcript::replay(&value::read(steps)?).map_err(Failure::from)?;
    Ok(value::write(answers))
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
pub fn place() -> u32 {
    THINGS.with_borrow_mut(|things| {
        things.push(0);
        things.len() as u32 - 1
    })
}

#[wasm_bindgen]
pub fn dig(number: u32, panics: bool) -> Result<u32, JsValue> {
    THINGS.with_borrow_mut(|things| {
        let thing =
            things.get_mut(number as usize).ok_or_else(|| Failure::new(Code::Lost, "open it anew"))?;
        *thing += 1;
        assert!(!panics, "on purpose");
        Ok(*thing)
    })
}
