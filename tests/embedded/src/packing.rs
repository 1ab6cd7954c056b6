//! `struct` as the scripts of Redis have it, of three kinds of value: doubles (`d`), texts up to a zero byte (`s`) and
//! texts of so many bytes (`c1` to `c9`), the doubles with their lowest byte first (`<`).
//!
//! Errors have words of their own: no script here meets them.

use mlua::{Lua, LuaString, MultiValue, Value, Variadic};

use crate::error_reply::ErrorReply;

#[derive(Clone, Copy)]
enum Kind {
    Double,
    Text,
    Bytes(usize),
}

/// `struct.pack(format, …)`.
pub(crate) fn pack(lua: &Lua, (format, values): (LuaString, Variadic<Value>)) -> mlua::Result<LuaString> {
    let mut bytes = Vec::with_capacity(128);
    let mut values = values.into_iter();
    for kind in kinds(&format.as_bytes())? {
        let value = values.next().unwrap_or(Value::Nil);
        match (kind, lua.coerce_string(value.clone())?) {
            (Kind::Double, _) => {
                let number = lua.coerce_number(value)?.ok_or_else(|| bad("a number expected"))?;
                bytes.extend(number.to_le_bytes());
            }
            (_, None) => return Err(bad("a string expected")),
            (Kind::Text, Some(text)) => {
                bytes.extend_from_slice(&text.as_bytes());
                bytes.push(0);
            }
            (Kind::Bytes(length), Some(text)) => {
                bytes.extend(text.as_bytes().get(..length).ok_or_else(|| bad("string too short"))?);
            }
        }
    }
    lua.create_string(bytes)
}

/// `struct.unpack(format, packed)`: the values, and where the next one would begin.
pub(crate) fn unpack(lua: &Lua, (format, packed): (LuaString, LuaString)) -> mlua::Result<MultiValue> {
    let packed = packed.as_bytes();
    let mut at = 0;
    let mut values = Vec::new();
    for kind in kinds(&format.as_bytes())? {
        let rest = packed.get(at..).unwrap_or_default();
        let length = match kind {
            Kind::Double => 8,
            Kind::Bytes(length) => length,
            Kind::Text => {
                rest.iter().position(|byte| *byte == 0).ok_or_else(|| bad("unfinished string in data"))?
            }
        };
        let bytes = rest.get(..length).ok_or_else(|| bad("data string too short"))?;
        at += length;
        values.push(match kind {
            Kind::Double => Value::Number(f64::from_le_bytes(bytes.try_into().expect("8 bytes"))),
            Kind::Bytes(_) => Value::String(lua.create_string(bytes)?),
            Kind::Text => {
                at += 1;
                Value::String(lua.create_string(bytes)?)
            }
        });
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(values.into_iter().collect())
}

/// What a format asks for; one that has more than is known here is refused.
fn kinds(format: &[u8]) -> mlua::Result<Vec<Kind>> {
    let Some((b'<', mut rest)) = format.split_first() else { return Err(unsupported()) };
    let mut kinds = Vec::with_capacity(rest.len());
    while let Some((letter, behind)) = rest.split_first() {
        rest = behind;
        kinds.push(match (letter, rest.split_first()) {
            (b'd', _) => Kind::Double,
            (b's', _) => Kind::Text,
            (b'c', Some((digit @ b'1'..=b'9', behind))) => {
                rest = behind;
                Kind::Bytes(usize::from(digit - b'0'))
            }
            _ => return Err(unsupported()),
        });
    }
    Ok(kinds)
}

fn bad(what: &str) -> mlua::Error {
    mlua::Error::external(ErrorReply::new(format!("ERR {what}")))
}

fn unsupported() -> mlua::Error {
    bad("leasehold-embedded: no struct format but one of '<' and then 'd', 's' and 'c1' to 'c9'")
}
