//! Quorums: several stores, a majority of which grants each lock.

use leasehold::Code;
use leasehold::client::OpenOptions;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::leasehold::{UNIT, handle};
use crate::runtime::prepare;
use crate::things::{self, HostQuorum, Thing, put};
use crate::{entered, value};

/// Opens the stores of a quorum: each server, and whether it is said to be a transport.
#[wasm_bindgen(js_name = openQuorum)]
pub fn open_quorum(servers: Vec<JsValue>, options: &JsValue) -> Result<u32, JsValue> {
    entered();
    Ok(opened(&servers, options)?)
}

fn opened(servers: &[JsValue], options: &JsValue) -> Result<u32, Failure> {
    // They are the same for all: what is wrong with them is of no server.
    OpenOptions::default().read(&value::options(options)?, UNIT)?;
    let quorum = HostQuorum::opened(servers.chunks(2), |server, field| match server {
        // JavaScript tells whether two are the same: the names of stores in memory, or transports.
        [target, is_transport] => match handle(target, is_transport.is_truthy(), options) {
            Ok(handle) => Ok((target.clone(), handle)),
            Err(failure) => Err(failure.within(field)),
        },
        _ => Err(Failure::new(Code::Internal, "a server came without its kind; please report it")),
    })?;
    Ok(put(Thing::Quorum(quorum)))
}

/// A lock of one name or several.
#[wasm_bindgen(js_name = quorumLock)]
pub fn quorum_lock(quorum: u32, names: &JsValue, options: &JsValue) -> Result<u32, JsValue> {
    entered();
    prepare()?;
    let (names, options) = (value::named(names, "names")?, value::options(options)?);
    let lock = things::quorum(quorum)?.lock_by(&names, &options, UNIT).map_err(Failure::from)?;
    Ok(put(Thing::Lock(lock)))
}

/// Ends acquisitions that wait.
#[wasm_bindgen(js_name = quorumClose)]
pub fn quorum_close(quorum: u32) -> Result<(), JsValue> {
    entered();
    things::quorum(quorum)?.close();
    Ok(())
}
