//! What the host supplies: `face/host.ts`.

use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen(raw_module = "../host.js")]
extern "C" {
    /// The error to throw for a failure of ours; `retry_after` is in microseconds, and below 0 where
    /// it is not known.
    pub fn failure(code: &str, message: &str, field: Option<String>, retry_after: f64) -> JsValue;

    /// The same for an exception of the caller's own code.
    pub fn passed(exception: &JsValue) -> JsValue;

    /// What an exception says.
    pub fn words(exception: &JsValue) -> String;

    /// Keeps the words of a panic for the error that the trap becomes.
    pub fn panicked(message: &str);

    /// Milliseconds on a clock that never goes back, and goes on while the machine sleeps.
    pub fn now() -> f64;

    /// When that clock began, in milliseconds since the Unix epoch.
    pub fn origin() -> f64;

    /// Random bytes. Workers have none before their first request.
    #[wasm_bindgen(catch)]
    pub fn entropy(bytes: &mut [u8]) -> Result<(), JsValue>;

    /// Has `run_task` called soon of a task, perhaps of one that begins.
    pub fn wake(task: u32, begins: bool);

    /// Has `settle` called when the time has come. Does not keep the process alive.
    #[wasm_bindgen(js_name = setTimer)]
    pub fn set_timer(number: u32, milliseconds: f64);

    /// Has `settle` called with what becomes of the promise.
    pub fn watch(number: u32, promise: &JsValue);

    /// Takes back a timer or a watch.
    pub fn forget(number: u32);

    /// Tells a call what came of it.
    pub fn answer(call: u32, fulfilled: bool, value: &JsValue);

    /// Keys and values in turn, or nothing if it is not a plain object. Fails with what a getter throws.
    #[wasm_bindgen(catch)]
    pub fn members(object: &JsValue) -> Result<Option<js_sys::Array>, JsValue>;

    /// Whether no half of a surrogate pair stands alone.
    #[wasm_bindgen(js_name = wellFormed)]
    pub fn well_formed(text: &js_sys::JsString) -> bool;

    /// What a lease is, for the face.
    pub fn lease(number: u32, slot: &JsValue, fence: u64, nonce: Option<u64>, in_doubt: bool) -> JsValue;

    /// Keeps the same for the face, which hears it after the call: sooner than it can be given back.
    #[wasm_bindgen(js_name = sayLease)]
    pub fn say_lease(number: u32, slot: &JsValue, fence: u64, nonce: Option<u64>, in_doubt: bool);

    /// Keeps an error for the face in the same way.
    pub fn say(error: &JsValue);

    /// Asks a transport. Resolves to [whether it is an error of the server, reply], or is rejected with
    /// [whether the command was sent, words].
    pub fn send(transport: &JsValue, command: &js_sys::Array) -> JsValue;

    /// For how many milliseconds it may still use a server whose place another took.
    pub fn lag(transport: &JsValue) -> u32;

    /// The text of the script that Redis knows by this digest, which stands beside the module.
    pub fn script(digest: &str) -> String;

    /// The number of a new subscription.
    #[wasm_bindgen(js_name = newNumber)]
    pub fn new_number() -> u32;

    /// Has `message` called with the messages of a channel. Resolves to whether the transport can, or is
    /// rejected with words.
    pub fn subscribe(number: u32, transport: &JsValue, channel: &str) -> JsValue;

    /// Ends a subscription.
    pub fn unsubscribe(number: u32);
}
