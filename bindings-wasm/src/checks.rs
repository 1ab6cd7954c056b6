//! What needs no store: the checks of fences, and the time to live that outlasts a chain of thieves.

use leasehold::{fence, handshake};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::leasehold::UNIT;
use crate::{entered, things, value};

/// The highest fence from now on, unless the holder is late.
#[wasm_bindgen(js_name = fenceAdmit)]
pub fn fence_admit(highest: &JsValue, fence: &JsValue) -> Result<u64, JsValue> {
    entered();
    let (highest, fence) = (value::named(highest, "highest")?, value::named(fence, "fence")?);
    Ok(fence::admit(&highest, &fence).map_err(Failure::from)?)
}

/// The time to live that outlasts a chain of thieves.
#[wasm_bindgen(js_name = recommendedTtl)]
pub fn recommended_ttl(options: &JsValue) -> Result<f64, JsValue> {
    entered();
    Ok(handshake::recommended_ttl(&value::options(options)?, UNIT).map_err(Failure::from)?)
}

/// The same by what was measured of a lock or a pool; nothing if nobody stole.
#[wasm_bindgen(js_name = recommendedTtlOf)]
pub fn recommended_ttl_of(thing: u32, options: &JsValue) -> Result<Option<f64>, JsValue> {
    entered();
    let options = value::options(options)?;
    let ttl = match things::pool(thing) {
        Ok(pool) => pool.recommended_ttl_by(&options, UNIT),
        Err(_) => things::lock(thing)?.recommended_ttl_by(&options, UNIT),
    };
    Ok(ttl.map_err(Failure::from)?)
}
