//! MessagePack as the scripts of Redis have it: what is packed one behind the other comes back as so many values.

use mlua::{Lua, MultiValue, Value};

use crate::error_reply::ErrorReply;

/// `cmsgpack.pack` of strings, numbers and booleans. Whole numbers become integers of the fewest bytes.
pub(crate) fn pack(lua: &Lua, values: MultiValue) -> mlua::Result<Value> {
    let mut bytes = Vec::with_capacity(64);
    for value in &values {
        match value {
            Value::Nil => bytes.push(0xC0),
            Value::Boolean(flag) => bytes.push(0xC2 | u8::from(*flag)),
            Value::Integer(number) => pack_integer(&mut bytes, *number),
            // Beyond 2^63 a double is no integer, also where it has no fraction.
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
                pack_integer(&mut bytes, *number as i64);
            }
            Value::Number(number) if f64::from(*number as f32) == *number => {
                bytes.push(0xCA);
                bytes.extend((*number as f32).to_be_bytes());
            }
            Value::Number(number) => {
                bytes.push(0xCB);
                bytes.extend(number.to_be_bytes());
            }
            Value::String(text) => pack_text(&mut bytes, &text.as_bytes()),
            _ => return Err(unsupported()),
        }
    }
    lua.create_string(bytes).map(Value::String)
}

/// `cmsgpack.unpack` of what `pack` made.
///
/// An error of what was not packed has words of its own: no script here meets it.
pub(crate) fn unpack(lua: &Lua, packed: mlua::LuaString) -> mlua::Result<MultiValue> {
    let packed = packed.as_bytes();
    let mut rest: &[u8] = &packed;
    let mut values = Vec::new();
    while let Some((&kind, behind)) = rest.split_first() {
        rest = behind;
        let value = match kind {
            0x00..=0x7F => Value::Number(f64::from(kind)),
            0xE0..=0xFF => Value::Number(f64::from(kind as i8)),
            0xA0..=0xBF => text(lua, &mut rest, usize::from(kind & 0x1F))?,
            0xC0 => Value::Nil,
            0xC2 | 0xC3 => Value::Boolean(kind == 0xC3),
            0xCA => Value::Number(f64::from(f32::from_be_bytes(take(&mut rest)?))),
            0xCB => Value::Number(f64::from_be_bytes(take(&mut rest)?)),
            0xCC => Value::Number(f64::from(u8::from_be_bytes(take(&mut rest)?))),
            0xCD => Value::Number(f64::from(u16::from_be_bytes(take(&mut rest)?))),
            0xCE => Value::Number(f64::from(u32::from_be_bytes(take(&mut rest)?))),
            0xCF => Value::Number(u64::from_be_bytes(take(&mut rest)?) as f64),
            0xD0 => Value::Number(f64::from(i8::from_be_bytes(take(&mut rest)?))),
            0xD1 => Value::Number(f64::from(i16::from_be_bytes(take(&mut rest)?))),
            0xD2 => Value::Number(f64::from(i32::from_be_bytes(take(&mut rest)?))),
            0xD3 => Value::Number(i64::from_be_bytes(take(&mut rest)?) as f64),
            0xD9 => {
                let length = u8::from_be_bytes(take(&mut rest)?);
                text(lua, &mut rest, usize::from(length))?
            }
            0xDA => {
                let length = u16::from_be_bytes(take(&mut rest)?);
                text(lua, &mut rest, usize::from(length))?
            }
            _ => return Err(bad()),
        };
        values.push(value);
    }
    Ok(values.into_iter().collect())
}

fn pack_integer(bytes: &mut Vec<u8>, number: i64) {
    match number {
        -0x20..=0x7F => bytes.push(number as u8),
        0x80..=0xFF => bytes.extend([0xCC, number as u8]),
        0x100..=0xFFFF => {
            bytes.push(0xCD);
            bytes.extend((number as u16).to_be_bytes());
        }
        0x1_0000..=0xFFFF_FFFF => {
            bytes.push(0xCE);
            bytes.extend((number as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            bytes.push(0xCF);
            bytes.extend(number.to_be_bytes());
        }
        -0x80..-0x20 => bytes.extend([0xD0, number as u8]),
        -0x8000..-0x80 => {
            bytes.push(0xD1);
            bytes.extend((number as i16).to_be_bytes());
        }
        -0x8000_0000..-0x8000 => {
            bytes.push(0xD2);
            bytes.extend((number as i32).to_be_bytes());
        }
        _ => {
            bytes.push(0xD3);
            bytes.extend(number.to_be_bytes());
        }
    }
}

/// Longer texts than 64 KiB are not packed by any script here.
fn pack_text(bytes: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        length @ 0..=0x1F => bytes.push(0xA0 | length as u8),
        length @ 0x20..=0xFF => bytes.extend([0xD9, length as u8]),
        length => {
            bytes.push(0xDA);
            bytes.extend((length as u16).to_be_bytes());
        }
    }
    bytes.extend_from_slice(text);
}

fn text(lua: &Lua, rest: &mut &[u8], length: usize) -> mlua::Result<Value> {
    let (text, behind) = rest.split_at_checked(length).ok_or_else(bad)?;
    *rest = behind;
    lua.create_string(text).map(Value::String)
}

fn take<const N: usize>(rest: &mut &[u8]) -> mlua::Result<[u8; N]> {
    let (bytes, behind) = rest.split_first_chunk::<N>().ok_or_else(bad)?;
    *rest = behind;
    Ok(*bytes)
}

fn bad() -> mlua::Error {
    mlua::Error::external(ErrorReply::fixed("ERR Bad data format in input."))
}

fn unsupported() -> mlua::Error {
    mlua::Error::external(ErrorReply::fixed(
        "ERR the embedded server packs strings, numbers and booleans only",
    ))
}
