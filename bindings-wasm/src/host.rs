//! What the host supplies: `face/host.ts`.

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen(raw_module = "../host.js")]
extern "C" {
    /// The error to throw for a failure of ours.
    pub fn failure(code: &str, message: &str) -> JsValue;

    /// The same for an exception of the caller's own code.
    pub fn passed(exception: &JsValue) -> JsValue;

    /// Keeps the words of a panic for the error that the trap becomes.
    pub fn panicked(message: &str);

    /// Milliseconds on a clock that never goes back.
    pub fn now() -> f64;

    /// Random bytes. Workers have none before their first request.
    #[wasm_bindgen(catch)]
    pub fn entropy(bytes: &mut [u8]) -> Result<(), JsValue>;

    /// Has `run_tasks` called soon.
    pub fn defer();

    /// Has `settle` called when the time has come. A background timer does not keep the process alive.
    #[wasm_bindgen(js_name = setTimer)]
    pub fn set_timer(milliseconds: f64, background: bool) -> u32;

    /// Has `settle` called with what becomes of the promise.
    pub fn watch(promise: &JsValue) -> u32;

    /// Takes back a timer or a watch.
    pub fn forget(number: u32);

    /// Keys and values in turn, or nothing if it is not a plain object. Fails with what a getter throws.
    #[wasm_bindgen(catch)]
    pub fn members(object: &JsValue) -> Result<Option<js_sys::Array>, JsValue>;
}
