//! What is found of stores by looking at them.

use leasehold::store::Finding;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::tasks::{Answer, call};
use crate::things::{leasehold as of, quorum as of_quorum};
use crate::{entered, value};

/// Looks whether the store is fit.
#[wasm_bindgen]
pub fn doctor(leasehold: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let leasehold = of(leasehold)?;
    let work = async move { Ok(written(&leasehold.doctor().await?)) };
    Ok(call(number, Box::pin(work)))
}

/// Looks whether the servers are fit.
#[wasm_bindgen(js_name = quorumDoctor)]
pub fn quorum_doctor(quorum: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let quorum = of_quorum(quorum)?;
    let work = async move { Ok(written(&quorum.doctor().await?)) };
    Ok(call(number, Box::pin(work)))
}

fn written(found: &[Finding]) -> Answer {
    Answer::Value(value::write(Finding::list(found)))
}
