/* @ts-self-types="./leasehold.d.ts" */
import { answer, entropy, failure, forget, lease, members, panicked, sayLease, script, setTimer, subscribe, unsubscribe, wake, watch, words } from '../host.js';
import * as import1 from "../host.js"
import * as import2 from "../host.js"
import * as import3 from "../host.js"
import * as import4 from "../host.js"
import * as import5 from "../host.js"
import * as import6 from "../host.js"
import * as import7 from "../host.js"
import * as import8 from "../host.js"


export function __wbg_reset_state () {
    __wbg_instance_id++;
    cachedDataViewMemory0 = null;
    cachedUint8ArrayMemory0 = null;
    if (typeof numBytesDecoded !== 'undefined') numBytesDecoded = 0;
    if (typeof WASM_VECTOR_LEN !== 'undefined') WASM_VECTOR_LEN = 0;
    __wbg_reinit_scheduled = false;
    wasmInstance = new WebAssembly.Instance(wasmModule, __wbg_get_imports());
    wasm = wasmInstance.exports;
    wasm.__wbindgen_start();
}

/**
 * Leases one slot, waiting.
 * @param {number} pool
 * @param {any} options
 * @param {number} number
 * @returns {number}
 */
export function acquire(pool, options, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.acquire(pool, options, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Locks its names, waiting; for a body that the face runs, perhaps not at all.
 * @param {number} lock
 * @param {any} options
 * @param {boolean} for_body
 * @param {number} number
 * @returns {number}
 */
export function acquireLock(lock, options, for_body, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.acquireLock(lock, options, for_body, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Leases several slots, waiting.
 * @param {number} pool
 * @param {any} options
 * @param {number} number
 * @returns {number}
 */
export function acquireMany(pool, options, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.acquireMany(pool, options, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Adds slots.
 * @param {number} pool
 * @param {any} slots
 * @param {number} number
 * @returns {number}
 */
export function add(pool, slots, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.add(pool, slots, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Gives up a call that has not ended. Called by the face.
 * @param {number} task
 */
export function cancel(task) {
    __wbg_call_guard();
    wasm.cancel(task);
}

/**
 * Changes a slot by one of the pool's verbs; `time` is for those that take one.
 * @param {number} pool
 * @param {string} verb
 * @param {any} slot
 * @param {any} time
 * @param {number} number
 * @returns {number}
 */
export function change(pool, verb, slot, time, number) {
    const val2 = +pool;
    const val3 = +number;
    const ptr0 = passStringToWasm0(verb, wasm.__wbindgen_malloc, wasm.__wbindgen_realloc);
    const len0 = WASM_VECTOR_LEN;
    let ret;
    __wbg_call_guard();
    ret = wasm.change(val2, ptr0, len0, slot, time, val3);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Opens no more pools.
 * @param {number} leasehold
 */
export function close(leasehold) {
    let ret;
    __wbg_call_guard();
    ret = wasm.close(leasehold);
    if (ret[1]) {
        throw takeFromExternrefTable0(ret[0]);
    }
}

/**
 * The garbage collector has taken what the face had. What is still held may still be relied on by whoever kept only a part of
 * it, and lasts to its deadline.
 * @param {number} number
 */
export function free(number) {
    __wbg_call_guard();
    wasm.free(number);
}

/**
 * How long holders took to yield of late, in milliseconds.
 * @param {number} lock
 * @returns {number}
 */
export function handshake(lock) {
    let ret;
    __wbg_call_guard();
    ret = wasm.handshake(lock);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0];
}

/**
 * Counts the slots, and looks at some.
 * @param {number} pool
 * @param {any} slots
 * @param {number} number
 * @returns {number}
 */
export function inspect(pool, slots, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.inspect(pool, slots, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * The ids of all slots.
 * @param {number} pool
 * @param {number} number
 * @returns {number}
 */
export function list(pool, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.list(pool, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * A lock of one name or several.
 * @param {number} leasehold
 * @param {any} names
 * @param {any} options
 * @returns {number}
 */
export function lock(leasehold, names, options) {
    let ret;
    __wbg_call_guard();
    ret = wasm.lock(leasehold, names, options);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Tells of a message of a channel. Called by the face.
 * @param {number} number
 * @param {string} text
 */
export function message(number, text) {
    const val2 = +number;
    const ptr0 = passStringToWasm0(text, wasm.__wbindgen_malloc, wasm.__wbindgen_realloc);
    const len0 = WASM_VECTOR_LEN;
    __wbg_call_guard();
    wasm.message(val2, ptr0, len0);
}

/**
 * Opens a store: a transport if it is said to be one, or else a URL or a configuration.
 * @param {any} target
 * @param {boolean} is_transport
 * @param {any} options
 * @returns {number}
 */
export function open(target, is_transport, options) {
    let ret;
    __wbg_call_guard();
    ret = wasm.open(target, is_transport, options);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Opens a pool.
 * @param {number} leasehold
 * @param {any} name
 * @param {any} options
 * @param {Function | null | undefined} read_nonce
 * @param {number} number
 * @returns {number}
 */
export function pool(leasehold, name, options, read_nonce, number) {
    const val1 = +leasehold;
    const val2 = +number;
    let ret;
    __wbg_call_guard();
    ret = wasm.pool(val1, name, options, isLikeNone(read_nonce) ? 0 : addToExternrefTable0(read_nonce), val2);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Reads the nonce from the chain and records it; gives what the lease is now.
 * @param {number} lease
 * @param {number} number
 * @returns {number}
 */
export function readNonce(lease, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.readNonce(lease, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * @param {number} lease
 * @param {any} expected
 */
export function rejected(lease, expected) {
    let ret;
    __wbg_call_guard();
    ret = wasm.rejected(lease, expected);
    if (ret[1]) {
        throw takeFromExternrefTable0(ret[0]);
    }
}

/**
 * Gives the slot back; the number is free from then on.
 * @param {number} lease
 * @param {any} options
 * @param {number} number
 * @returns {number}
 */
export function release(lease, options, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.release(lease, options, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Gives it back; the number is free from then on.
 * @param {number} locked
 * @param {number} number
 * @returns {number}
 */
export function releaseLock(locked, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.releaseLock(locked, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * The same at once, for a store in memory; the face hears the error that came of it, if one did. Does nothing if the store is
 * elsewhere.
 * @param {number} lease
 * @returns {number}
 */
export function releaseNow(lease) {
    let ret;
    __wbg_call_guard();
    ret = wasm.releaseNow(lease);
    return ret >>> 0;
}

/**
 * The same with options.
 * @param {number} lease
 * @param {any} options
 * @returns {number}
 */
export function releaseNowWith(lease, options) {
    let ret;
    __wbg_call_guard();
    ret = wasm.releaseNowWith(lease, options);
    return ret >>> 0;
}

/**
 * How long it can be relied on, in milliseconds.
 * @param {number} thing
 * @returns {number}
 */
export function remaining(thing) {
    let ret;
    __wbg_call_guard();
    ret = wasm.remaining(thing);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0];
}

/**
 * Prolongs the lease.
 * @param {number} lease
 * @param {any} ttl
 * @param {number} number
 * @returns {number}
 */
export function renew(lease, ttl, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.renew(lease, ttl, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Records the chain's nonce; gives what the lease is now.
 * @param {number} lease
 * @param {any} nonce
 * @param {any} options
 * @param {number} number
 * @returns {number}
 */
export function resync(lease, nonce, options, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.resync(lease, nonce, options, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Gives a task that was woken one turn; true if it has ended. Called by the face.
 * @param {number} number
 * @returns {boolean}
 */
export function runTask(number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.runTask(number);
    return ret !== 0;
}

/**
 * Tells what became of a timer or a promise. Called by the face.
 * @param {number} number
 * @param {boolean} fulfilled
 * @param {any} value
 */
export function settle(number, fulfilled, value) {
    __wbg_call_guard();
    wasm.settle(number, fulfilled, value);
}

/**
 * Runs whenever an instance is made, also after a trap.
 */
export function start() {
    __wbg_call_guard();
    wasm.start();
}

/**
 * What this handle has done so far.
 * @param {number} pool
 * @returns {any}
 */
export function statistics(pool) {
    let ret;
    __wbg_call_guard();
    ret = wasm.statistics(pool);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return takeFromExternrefTable0(ret[0]);
}

/**
 * Ends as a failure when it is claimed, or else when it is lost, and with nothing once it was given back. Fails at once
 * where that is so already, and begins nothing where there will be no word.
 * @param {number} thing
 * @param {boolean} claimed
 * @param {number} number
 * @returns {number}
 */
export function told(thing, claimed, number) {
    let ret;
    __wbg_call_guard();
    ret = wasm.told(thing, claimed, number);
    if (ret[2]) {
        throw takeFromExternrefTable0(ret[1]);
    }
    return ret[0] >>> 0;
}

/**
 * Leases one slot at once, which the face hears then, or does nothing.
 * @param {number} pool
 * @returns {number}
 */
export function tryAcquire(pool) {
    let ret;
    __wbg_call_guard();
    ret = wasm.tryAcquire(pool);
    return ret >>> 0;
}

/**
 * The same with options: to pass a value takes longer than many a pool takes to find a slot.
 * @param {number} pool
 * @param {any} options
 * @returns {number}
 */
export function tryAcquireWith(pool, options) {
    let ret;
    __wbg_call_guard();
    ret = wasm.tryAcquireWith(pool, options);
    return ret >>> 0;
}

/**
 * @param {number} lease
 */
export function unknown(lease) {
    let ret;
    __wbg_call_guard();
    ret = wasm.unknown(lease);
    if (ret[1]) {
        throw takeFromExternrefTable0(ret[0]);
    }
}

/**
 * @param {number} lease
 */
export function unused(lease) {
    let ret;
    __wbg_call_guard();
    ret = wasm.unused(lease);
    if (ret[1]) {
        throw takeFromExternrefTable0(ret[0]);
    }
}

/**
 * @param {number} lease
 * @param {any} next
 */
export function used(lease, next) {
    let ret;
    __wbg_call_guard();
    ret = wasm.used(lease, next);
    if (ret[1]) {
        throw takeFromExternrefTable0(ret[0]);
    }
}

/**
 * The version of the module.
 * @returns {string}
 */
export function version() {
    let deferred1_0;
    let deferred1_1;
    try {
        let ret;
        __wbg_call_guard();
        ret = wasm.version();
        deferred1_0 = ret[0];
        deferred1_1 = ret[1];
        return getStringFromWasm0(ret[0], ret[1]);
    } finally {
        __wbg_call_guard();
        wasm.__wbindgen_free(deferred1_0, deferred1_1, 1);
    }
}
function __wbg_get_imports() {
    const import0 = {
        __proto__: null,
        __wbindgen_bigint_get_as_i64: function(arg0, arg1) {
            const v = arg1;
            const ret = typeof(v) === 'bigint' ? v : undefined;
            getDataViewMemory0().setBigInt64((arg0 >>> 0) + 8 * 1, isLikeNone(ret) ? BigInt(0) : ret, true);
            getDataViewMemory0().setInt32((arg0 >>> 0) + 4 * 0, !isLikeNone(ret), true);
        },
        __wbindgen_boolean_get: function(arg0) {
            const v = arg0;
            const ret = typeof(v) === 'boolean' ? v : undefined;
            return isLikeNone(ret) ? 0xFFFFFF : ret ? 1 : 0;
        },
        __wbindgen_is_bigint: function(arg0) {
            const ret = typeof(arg0) === 'bigint';
            return ret;
        },
        __wbindgen_is_falsy: function(arg0) {
            const ret = !arg0;
            return ret;
        },
        __wbindgen_is_function: function(arg0) {
            const ret = typeof(arg0) === 'function';
            return ret;
        },
        __wbindgen_is_null: function(arg0) {
            const ret = arg0 === null;
            return ret;
        },
        __wbindgen_is_string: function(arg0) {
            const ret = typeof(arg0) === 'string';
            return ret;
        },
        __wbindgen_is_symbol: function(arg0) {
            const ret = typeof(arg0) === 'symbol';
            return ret;
        },
        __wbindgen_is_undefined: function(arg0) {
            const ret = arg0 === undefined;
            return ret;
        },
        __wbindgen_jsval_eq: function(arg0, arg1) {
            const ret = arg0 === arg1;
            return ret;
        },
        __wbindgen_number_get: function(arg0, arg1) {
            const obj = arg1;
            const ret = typeof(obj) === 'number' ? obj : undefined;
            getDataViewMemory0().setFloat64((arg0 >>> 0) + 8 * 1, isLikeNone(ret) ? 0 : ret, true);
            getDataViewMemory0().setInt32((arg0 >>> 0) + 4 * 0, !isLikeNone(ret), true);
        },
        __wbindgen_shr: function(arg0, arg1) {
            const ret = arg0 >> arg1;
            return ret;
        },
        __wbindgen_string_get: function(arg0, arg1) {
            const obj = arg1;
            const ret = typeof(obj) === 'string' ? obj : undefined;
            var ptr1 = isLikeNone(ret) ? 0 : passStringToWasm0(ret, wasm.__wbindgen_malloc, wasm.__wbindgen_realloc);
            var len1 = WASM_VECTOR_LEN;
            getDataViewMemory0().setInt32((arg0 >>> 0) + 4 * 1, len1, true);
            getDataViewMemory0().setInt32((arg0 >>> 0) + 4 * 0, ptr1, true);
        },
        __wbindgen_throw: function(arg0, arg1) {
            throw new Error(getStringFromWasm0(arg0, arg1));
        },
        answer: function(arg0, arg1, arg2) {
            answer(arg0 >>> 0, arg1 !== 0, arg2);
        },
        call: function() { return handleError(function (arg0, arg1, arg2) {
            const ret = arg0.call(arg1, arg2);
            return ret;
        }, arguments); },
        entropy: function() { return handleError(function (arg0, arg1) {
            entropy(getArrayU8FromWasm0(arg0, arg1));
        }, arguments); },
        failure: function(arg0, arg1, arg2, arg3, arg4, arg5, arg6) {
            let v0;
            if (arg4 !== 0) {
                v0 = getStringFromWasm0(arg4, arg5);
                wasm.__wbindgen_free(arg4, arg5 * 1, 1);
            }
            const ret = failure(getStringFromWasm0(arg0, arg1), getStringFromWasm0(arg2, arg3), v0, arg6);
            return ret;
        },
        forget: function(arg0) {
            forget(arg0 >>> 0);
        },
        fromEntries: function() { return handleError(function (arg0) {
            const ret = Object.fromEntries(arg0);
            return ret;
        }, arguments); },
        get: function(arg0, arg1) {
            const ret = arg0[arg1 >>> 0];
            return ret;
        },
        get_unchecked: function(arg0, arg1) {
            const ret = arg0[arg1 >>> 0];
            return ret;
        },
        isArray: function(arg0) {
            const ret = Array.isArray(arg0);
            return ret;
        },
        lease: function(arg0, arg1, arg2, arg3, arg4, arg5) {
            const ret = lease(arg0 >>> 0, arg1, BigInt.asUintN(64, arg2), arg3 === 0 ? undefined : BigInt.asUintN(64, arg4), arg5 !== 0);
            return ret;
        },
        length: function(arg0) {
            const ret = arg0.length;
            return ret;
        },
        members: function() { return handleError(function (arg0) {
            const ret = members(arg0);
            return isLikeNone(ret) ? 0 : addToExternrefTable0(ret);
        }, arguments); },
        new: function() {
            const ret = new Array();
            return ret;
        },
        of: function(arg0, arg1) {
            const ret = Array.of(arg0, arg1);
            return ret;
        },
        panicked: function(arg0, arg1) {
            panicked(getStringFromWasm0(arg0, arg1));
        },
        push: function(arg0, arg1) {
            const ret = arg0.push(arg1);
            return ret;
        },
        sayLease: function(arg0, arg1, arg2, arg3, arg4, arg5) {
            sayLease(arg0 >>> 0, arg1, BigInt.asUintN(64, arg2), arg3 === 0 ? undefined : BigInt.asUintN(64, arg4), arg5 !== 0);
        },
        script: function(arg0, arg1, arg2) {
            const ret = script(getStringFromWasm0(arg1, arg2));
            const ptr1 = passStringToWasm0(ret, wasm.__wbindgen_malloc, wasm.__wbindgen_realloc);
            const len1 = WASM_VECTOR_LEN;
            getDataViewMemory0().setInt32((arg0 >>> 0) + 4 * 1, len1, true);
            getDataViewMemory0().setInt32((arg0 >>> 0) + 4 * 0, ptr1, true);
        },
        setTimer: function(arg0, arg1) {
            setTimer(arg0 >>> 0, arg1);
        },
        subscribe: function(arg0, arg1, arg2, arg3) {
            const ret = subscribe(arg0 >>> 0, arg1, getStringFromWasm0(arg2, arg3));
            return ret;
        },
        unsubscribe: function(arg0) {
            unsubscribe(arg0 >>> 0);
        },
        wake: function(arg0, arg1) {
            wake(arg0 >>> 0, arg1 !== 0);
        },
        watch: function(arg0, arg1) {
            watch(arg0 >>> 0, arg1);
        },
        words: function(arg0, arg1) {
            const ret = words(arg1);
            const ptr1 = passStringToWasm0(ret, wasm.__wbindgen_malloc, wasm.__wbindgen_realloc);
            const len1 = WASM_VECTOR_LEN;
            getDataViewMemory0().setInt32((arg0 >>> 0) + 4 * 1, len1, true);
            getDataViewMemory0().setInt32((arg0 >>> 0) + 4 * 0, ptr1, true);
        },
        __wbindgen_generic_0000000000000001: function(arg0) {
            // Cast intrinsic for `F64 -> Externref`.
            const ret = arg0;
            return ret;
        },
        __wbindgen_generic_0000000000000002: function(arg0, arg1) {
            // Cast intrinsic for `I128 -> Externref`.
            const ret = (BigInt.asUintN(64, arg0) | (arg1 << BigInt(64)));
            return ret;
        },
        __wbindgen_generic_0000000000000003: function(arg0) {
            // Cast intrinsic for `I64 -> Externref`.
            const ret = arg0;
            return ret;
        },
        __wbindgen_generic_0000000000000004: function(arg0, arg1) {
            // Cast intrinsic for `Ref(String) -> Externref`.
            const ret = getStringFromWasm0(arg0, arg1);
            return ret;
        },
        __wbindgen_generic_0000000000000005: function(arg0) {
            // Cast intrinsic for `U64 -> Externref`.
            const ret = BigInt.asUintN(64, arg0);
            return ret;
        },
        __wbindgen_init_externref_table: function() {
            const table = wasm.__wbindgen_externrefs;
            table.set(0, undefined);
            table.set(1024, undefined);
            table.set(1025, null);
            table.set(1026, true);
            table.set(1027, false);
        },
    };
    return {
        __proto__: null,
        "./leasehold_bg.js": import0,
        "../host.js": import1,
        "../host.js": import2,
        "../host.js": import3,
        "../host.js": import4,
        "../host.js": import5,
        "../host.js": import6,
        "../host.js": import7,
        "../host.js": import8,
    };
}

function __wbg_call_guard() {
    if (__wbg_reinit_scheduled) {
        __wbg_reset_state();
        return;
    }
}


let __wbg_instance_id = 0;

function addToExternrefTable0(obj) {
    const idx = wasm.__externref_table_alloc();
    wasm.__wbindgen_externrefs.set(idx, obj);
    return idx;
}

function getArrayU8FromWasm0(ptr, len) {
    ptr = ptr >>> 0;
    return getUint8ArrayMemory0().subarray(ptr / 1, ptr / 1 + len);
}

let cachedDataViewMemory0 = null;
function getDataViewMemory0() {
    if (cachedDataViewMemory0 === null || cachedDataViewMemory0.buffer.detached === true || (cachedDataViewMemory0.buffer.detached === undefined && cachedDataViewMemory0.buffer !== wasm.memory.buffer)) {
        cachedDataViewMemory0 = new DataView(wasm.memory.buffer);
    }
    return cachedDataViewMemory0;
}

function getStringFromWasm0(ptr, len) {
    ptr = ptr >>> 0;
    return decodeText(getUint8ArrayMemory0().subarray(ptr, ptr + len));
}

let cachedUint8ArrayMemory0 = null;
function getUint8ArrayMemory0() {
    if (cachedUint8ArrayMemory0 === null || cachedUint8ArrayMemory0.byteLength === 0) {
        cachedUint8ArrayMemory0 = new Uint8Array(wasm.memory.buffer);
    }
    return cachedUint8ArrayMemory0;
}

function handleError(f, args) {
    try {
        return f.apply(this, args);
    } catch (e) {
        const idx = addToExternrefTable0(e);
        wasm.__wbindgen_exn_store(idx);
    }
}

function isLikeNone(x) {
    return x === undefined || x === null;
}

function passStringToWasm0(arg, malloc, realloc) {
    if (realloc === undefined) {
        const buf = cachedTextEncoder.encode(arg);
        const ptr = malloc(buf.length, 1) >>> 0;
        getUint8ArrayMemory0().subarray(ptr, ptr + buf.length).set(buf);
        WASM_VECTOR_LEN = buf.length;
        return ptr;
    }

    let len = arg.length;
    let ptr = malloc(len, 1) >>> 0;

    const mem = getUint8ArrayMemory0();

    let offset = 0;

    for (; offset < len; offset++) {
        const code = arg.charCodeAt(offset);
        if (code > 0x7F) break;
        mem[ptr + offset] = code;
    }
    if (offset !== len) {
        if (offset !== 0) {
            arg = arg.slice(offset);
        }
        ptr = realloc(ptr, len, len = offset + arg.length * 3, 1) >>> 0;
        const view = getUint8ArrayMemory0().subarray(ptr + offset, ptr + len);
        const ret = cachedTextEncoder.encodeInto(arg, view);

        offset += ret.written;
        ptr = realloc(ptr, len, offset, 1) >>> 0;
    }

    WASM_VECTOR_LEN = offset;
    return ptr;
}

let __wbg_reinit_scheduled = false;

function takeFromExternrefTable0(idx) {
    const value = wasm.__wbindgen_externrefs.get(idx);
    wasm.__externref_table_dealloc(idx);
    return value;
}

let cachedTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
cachedTextDecoder.decode();
const MAX_SAFARI_DECODE_BYTES = 2146435072;
let numBytesDecoded = 0;
function decodeText(bytes) {
    numBytesDecoded += bytes.length;
    if (numBytesDecoded >= MAX_SAFARI_DECODE_BYTES) {
        cachedTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
        cachedTextDecoder.decode();
        numBytesDecoded = bytes.length;
    }
    return cachedTextDecoder.decode(bytes);
}

const cachedTextEncoder = new TextEncoder();

if (!('encodeInto' in cachedTextEncoder)) {
    cachedTextEncoder.encodeInto = function (arg, view) {
        const buf = cachedTextEncoder.encode(arg);
        view.set(buf);
        return {
            read: arg.length,
            written: buf.length
        };
    };
}

let WASM_VECTOR_LEN = 0;

let wasmModule, wasmInstance, wasm;
function __wbg_finalize_init(instance, module) {
    wasmInstance = instance;
    wasm = instance.exports;
    wasmModule = module;
    cachedDataViewMemory0 = null;
    cachedUint8ArrayMemory0 = null;
    wasm.__wbindgen_start();
    return wasm;
}

async function __wbg_load(module, imports) {
    if (typeof Response === 'function' && module instanceof Response) {
        if (!module.ok) {
            throw new Error(`failed to fetch Wasm: ${module.status} ${module.statusText} fetching '${module.url}'`);
        }

        if (typeof WebAssembly.instantiateStreaming === 'function') {
            try {
                return await WebAssembly.instantiateStreaming(module, imports);
            } catch (e) {
                const validResponse = expectedResponseType(module.type);

                if (validResponse && module.headers.get('Content-Type') !== 'application/wasm') {
                    console.warn("`WebAssembly.instantiateStreaming` failed because your server does not serve Wasm with `application/wasm` MIME type. Falling back to `WebAssembly.instantiate` which is slower. Original error:\n", e);

                } else { throw e; }
            }
        }

        const bytes = await module.arrayBuffer();
        return await WebAssembly.instantiate(bytes, imports);
    } else {
        const instance = await WebAssembly.instantiate(module, imports);

        if (instance instanceof WebAssembly.Instance) {
            return { instance, module };
        } else {
            return instance;
        }
    }

    function expectedResponseType(type) {
        switch (type) {
            case 'basic': case 'cors': case 'default': return true;
        }
        return false;
    }
}

function initSync(module) {
    if (wasm !== undefined) return wasm;


    if (module !== undefined) {
        if (Object.getPrototypeOf(module) === Object.prototype) {
            ({module} = module)
        } else {
            console.warn('using deprecated parameters for `initSync()`; pass a single object instead')
        }
    }

    const imports = __wbg_get_imports();
    if (!(module instanceof WebAssembly.Module)) {
        module = new WebAssembly.Module(module);
    }
    const instance = new WebAssembly.Instance(module, imports);
    return __wbg_finalize_init(instance, module);
}

let __wbg_init_promise;
async function __wbg_init(module_or_path) {
    if (wasm !== undefined) return wasm;
    if (__wbg_init_promise === undefined) {
        __wbg_init_promise = __wbg_init_once(module_or_path);
        __wbg_init_promise.catch(() => { __wbg_init_promise = undefined; });
    }
    return __wbg_init_promise;
}

async function __wbg_init_once(module_or_path) {

    if (module_or_path !== undefined) {
        if (Object.getPrototypeOf(module_or_path) === Object.prototype) {
            ({module_or_path} = module_or_path)
        } else {
            console.warn('using deprecated parameters for the initialization function; pass a single object instead')
        }
    }


    const imports = __wbg_get_imports();

    if (typeof module_or_path === 'string' || (typeof Request === 'function' && module_or_path instanceof Request) || (typeof URL === 'function' && module_or_path instanceof URL)) {
        module_or_path = fetch(module_or_path);
    }

    const { instance, module } = await __wbg_load(await module_or_path, imports);

    return __wbg_finalize_init(instance, module);
}

export { initSync, __wbg_init as default };
