//! The one conversion between JavaScript values and the core's: options in, results out.

use std::fmt;

use leasehold::error::{Error as CoreError, Result as CoreResult};
use leasehold::value::{MAX_VALUES, Value};
use napi::bindgen_prelude::{Array, BigInt, FromNapiValue, JsObjectValue, Object, ToNapiValue, Unknown, sys};
use napi::{
    Env, Error, JsValue, KeyCollectionMode, KeyConversion, KeyFilter, Property, PropertyAttributes, Result,
    ValueType,
};

use crate::answer::contain;

/// Deeper than any option; a value that contains itself ends here instead of on the stack.
const MAX_DEPTH: usize = 32;

/// An argument of any type. One that has no place in a `Value` is an error of the core, by its path, once
/// the export says what the argument is called.
pub struct Arg(CoreResult<Value>);

impl Arg {
    /// The argument of this name.
    pub fn named(self, name: &str) -> CoreResult<Value> {
        self.0.map_err(|error| error.within(name))
    }

    /// A map of options, in which a path begins with the option's own name.
    pub fn options(self) -> CoreResult<Value> {
        self.0.map_err(|error| if error.field() == Some("") { error.within("options") } else { error })
    }

    /// The text of this name.
    pub fn text(self, name: &str) -> CoreResult<String> {
        let value = self.named(name)?;
        value.as_text().map(str::to_owned).map_err(|error| error.within(name))
    }

    /// The nonce of this name, unless it is left out.
    pub fn nonce(self, name: &str) -> CoreResult<Option<u64>> {
        match self.named(name)? {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).map_err(|error| error.within(name)),
        }
    }
}

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; the value is alive during the call")]
impl FromNapiValue for Arg {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // SAFETY: `napi_value` arguments stay alive for the whole callback.
        let unknown = unsafe { Unknown::from_napi_value(env, value)? };
        contain(|| match read(unknown, 0, &mut Room(MAX_VALUES)) {
            Ok(value) => Ok(Arg(Ok(value))),
            Err(Fault { thrown: Some(error), .. }) => Err(error),
            Err(fault) => {
                let path = fault.path.strip_prefix('.').unwrap_or(&fault.path);
                Ok(Arg(Err(CoreError::invalid(path, fault.reason))))
            }
        })
    }
}

/// A result of any type.
pub struct Out(pub Value);

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; only its own functions are called here")]
impl ToNapiValue for Out {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> Result<sys::napi_value> {
        // SAFETY: each call makes a new value in the environment it was given.
        contain(|| unsafe {
            match value.0 {
                Value::Null => <()>::to_napi_value(env, ()),
                Value::Bool(flag) => bool::to_napi_value(env, flag),
                Value::Number(number) => f64::to_napi_value(env, number),
                Value::Integer(integer) => BigInt::to_napi_value(env, big_int(integer)),
                Value::Text(text) => String::to_napi_value(env, text),
                Value::List(items) => Vec::to_napi_value(env, items.into_iter().map(Out).collect()),
                Value::Map(members) => {
                    let mut object = Object::new(&Env::from_raw(env))?;
                    for (key, member) in members {
                        set_member(&mut object, &key, member)?;
                    }
                    Object::to_napi_value(env, object)
                }
            }
        })
    }
}

/// A value that cannot be taken, and where it stands.
struct Fault {
    path: String,
    reason: String,
    /// An exception thrown by the caller's own code, such as a getter, goes back to the caller as it is.
    thrown: Option<Error>,
}

impl Fault {
    fn new(reason: impl fmt::Display) -> Self {
        Fault { path: String::new(), reason: reason.to_string(), thrown: None }
    }

    fn under(mut self, segment: impl fmt::Display) -> Self {
        self.path = format!("{segment}{}", self.path);
        self
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault { thrown: Some(error), ..Fault::new("") }
    }
}

/// How many values an argument may still have. Those of a list are counted before room is made for them.
struct Room(usize);

impl Room {
    fn take(&mut self, values: u32) -> std::result::Result<(), Fault> {
        let left = self.0.checked_sub(values as usize);
        self.0 = left.ok_or_else(|| Fault::new(format!("more than {MAX_VALUES} values in one argument")))?;
        Ok(())
    }
}

#[allow(unsafe_code, reason = "a cast is sound because the type was asked for first")]
fn read(value: Unknown<'_>, depth: usize, room: &mut Room) -> std::result::Result<Value, Fault> {
    if depth > MAX_DEPTH {
        return Err(Fault::new(format!("nested more than {MAX_DEPTH} deep")));
    }
    // SAFETY: each cast is to the type that the value has just said it has.
    unsafe {
        match value.get_type()? {
            ValueType::Undefined | ValueType::Null => Ok(Value::Null),
            ValueType::Boolean => Ok(Value::Bool(value.cast()?)),
            ValueType::Number => Ok(Value::Number(value.cast()?)),
            ValueType::BigInt => read_integer(&value.cast()?).map(Value::Integer),
            ValueType::String => read_text(value).map(Value::Text),
            ValueType::Object if value.is_array()? => read_list(&value.cast()?, depth, room),
            ValueType::Object => read_map(&value.cast()?, depth, room),
            ValueType::Function => Err(Fault::new("a function cannot be used here")),
            ValueType::Symbol => Err(Fault::new("a symbol cannot be used here")),
            _ => Err(Fault::new("a value of this type cannot be used here")),
        }
    }
}

/// By words, because napi's own `get_i128` misjudges the smallest value.
fn read_integer(integer: &BigInt) -> std::result::Result<i128, Fault> {
    let word = |index: usize| u128::from(integer.words.get(index).copied().unwrap_or(0));
    let magnitude = word(0) | word(1) << 64;
    let fits = integer.words.iter().skip(2).all(|word| *word == 0);
    let signed =
        if integer.sign_bit { 0_i128.checked_sub_unsigned(magnitude) } else { magnitude.try_into().ok() };
    signed.filter(|_| fits).ok_or_else(|| Fault::new("an integer beyond 128 bits cannot be used here"))
}

/// By UTF-16, because the UTF-8 call replaces half a surrogate pair in silence, and two ids would become one.
#[allow(unsafe_code, reason = "a cast is sound because the type was asked for first")]
fn read_text(value: Unknown<'_>) -> std::result::Result<String, Fault> {
    // SAFETY: the caller has seen that it is a string.
    let units: napi::JsString = unsafe { value.cast()? };
    let units = units.into_utf16()?;
    // `as_slice` carries the closing NUL of the C interface.
    let units = units.as_slice();
    let units = units.strip_suffix(&[0]).unwrap_or(units);
    String::from_utf16(units).map_err(|_| Fault::new("a text with half a surrogate pair cannot be used here"))
}

fn read_list(list: &Array<'_>, depth: usize, room: &mut Room) -> std::result::Result<Value, Fault> {
    room.take(list.len())?;
    let mut items = Vec::with_capacity(list.len() as usize);
    for index in 0..list.len() {
        let item = list.get_element::<Unknown<'_>>(index)?;
        items.push(read(item, depth + 1, room).map_err(|fault| fault.under(format_args!("[{index}]")))?);
    }
    Ok(Value::List(items))
}

fn read_map(object: &Object<'_>, depth: usize, room: &mut Room) -> std::result::Result<Value, Fault> {
    if object.is_date()? || object.is_typedarray()? || object.is_arraybuffer()? || object.is_promise()? {
        return Err(Fault::new("only plain objects and arrays can be used here"));
    }
    let keys = object.get_all_property_names(
        KeyCollectionMode::OwnOnly,
        KeyFilter::Enumerable,
        KeyConversion::NumbersToStrings,
    )?;
    let mut members = Vec::new();
    let length = keys.get_array_length()?;
    room.take(length)?;
    for index in 0..length {
        let key = keys.get_element::<Unknown<'_>>(index)?;
        if key.get_type()? == ValueType::Symbol {
            continue;
        }
        // By the key as it is: a name of C's ends at a NUL.
        let member = object.get_property_unchecked::<_, Unknown<'_>>(key)?;
        let key = read_text(key)?;
        let member = read(member, depth + 1, room).map_err(|fault| fault.under(format_args!(".{key}")))?;
        members.push((key, member));
    }
    Ok(Value::Map(members))
}

fn big_int(integer: i128) -> BigInt {
    let magnitude = integer.unsigned_abs();
    BigInt { sign_bit: integer < 0, words: vec![magnitude as u64, (magnitude >> 64) as u64] }
}

/// A plain set of `__proto__` would change the object's prototype instead of giving it a member.
fn set_member(object: &mut Object<'_>, key: &str, member: Value) -> Result<()> {
    if key != "__proto__" {
        return object.set(key, Out(member));
    }
    let property = Property::new().with_utf8_name(key)?.with_property_attributes(
        PropertyAttributes::Writable | PropertyAttributes::Enumerable | PropertyAttributes::Configurable,
    );
    object.define_properties(&[property.with_napi_value(&Env::from_raw(object.value().env), Out(member))?])
}
