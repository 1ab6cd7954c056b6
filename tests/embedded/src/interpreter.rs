//! Lua 5.1 with the world that Redis gives to scripts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mlua::chunk::ChunkMode;
use mlua::{Either, Function, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value};
use rustc_hash::FxHashMap;
use sha1_smol::Sha1;

use crate::Resp;
use crate::arguments::Arguments;
use crate::commands::introspection::VERSION;
use crate::error_reply::{Answer, ErrorReply};
use crate::number::truncate_double;
use crate::packing;
use crate::server::Server;

/// The interpreter, with the scripts that it has compiled.
#[derive(Debug)]
pub(crate) struct Interpreter {
    lua: Lua,
    /// The real globals; scripts see them through `front`.
    globals: Table,
    front: Table,
    run: Function,
    names: Names,
    compiled: FxHashMap<String, Function>,
    random: Arc<AtomicU64>,
}

/// Strings that every reply is searched for, made once.
#[derive(Clone, Debug)]
struct Names {
    keys: LuaString,
    argv: LuaString,
    ok: LuaString,
    err: LuaString,
    line: LuaString,
}

impl Interpreter {
    pub(crate) fn new(server: &Arc<Mutex<Server>>) -> Self {
        Self::build(server).expect("the embedded interpreter starts")
    }

    /// Compiles a script, unless it has been before; what it answers is the error of a script that is no Lua.
    pub(crate) fn compile(&mut self, sha: &str, source: &[u8]) -> Result<(), ErrorReply> {
        if self.compiled.contains_key(sha) {
            return Ok(());
        }
        let chunk = self.lua.load(source).set_name("@user_script").set_mode(ChunkMode::Text);
        let function = chunk.set_environment(self.front.clone()).into_function().map_err(|error| {
            let text = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            ErrorReply::new(format!("ERR Error compiling script (new function): {text}"))
        })?;
        self.compiled.insert(sha.to_owned(), function);
        Ok(())
    }

    /// Runs a compiled script.
    pub(crate) fn call(&self, sha: &str, keys: &[&[u8]], argv: &[&[u8]]) -> Resp {
        self.try_call(sha, keys, argv)
            .unwrap_or_else(|error| Resp::Error(format!("ERR Error running script: {error}")))
    }

    /// Starts the numbers of `math.random` anew, as a restarted server does.
    pub(crate) fn restart(&self) {
        self.random.store(FIRST_RANDOM, Ordering::Relaxed);
    }

    fn build(server: &Arc<Mutex<Server>>) -> mlua::Result<Self> {
        let libraries = StdLib::MATH | StdLib::STRING | StdLib::TABLE;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let text = |text: &str| lua.create_string(text);
        let names = Names {
            keys: text("KEYS")?,
            argv: text("ARGV")?,
            ok: text("ok")?,
            err: text("err")?,
            line: text("line")?,
        };
        let random = Arc::new(AtomicU64::new(FIRST_RANDOM));
        let tools = tools(&lua, &random)?;
        add_commands(&lua, &tools, server, &names)?;
        let line = lua.create_function(|lua, ()| Ok(line_of_script(lua)))?;
        let text_of = lua.create_function(text_of)?;
        let sandbox = lua.load(include_str!("sandbox.lua")).set_name("=sandbox").into_function()?;
        let (globals, front, run) = sandbox.call((line, text_of, tools))?;
        Ok(Self { lua, globals, front, run, names, compiled: FxHashMap::default(), random })
    }

    fn try_call(&self, sha: &str, keys: &[&[u8]], argv: &[&[u8]]) -> mlua::Result<Resp> {
        let Some(script) = self.compiled.get(sha) else {
            return Ok(Resp::Error(NO_SCRIPT.to_owned()));
        };
        for (name, values) in [(&self.names.keys, keys), (&self.names.argv, argv)] {
            let table = self.lua.create_table_with_capacity(values.len(), 0)?;
            for value in values {
                table.raw_push(self.lua.create_string(value)?)?;
            }
            self.globals.raw_set(name, table)?;
        }
        let (done, result): (bool, Value) = self.run.call(script)?;
        if done {
            return self.names.reply(result);
        }
        self.explain(sha, result)
    }

    /// The error reply of a script that failed, which names the script and the line.
    fn explain(&self, sha: &str, failure: Value) -> mlua::Result<Resp> {
        let Value::Table(failure) = failure else {
            return Ok(Resp::Error("ERR unknown error".to_owned()));
        };
        let text: LuaString = failure.raw_get(&self.names.err)?;
        let text = text.to_string_lossy();
        let place = match failure.raw_get::<Option<u32>>(&self.names.line)? {
            Some(line) => format!(" script: {sha}, on @user_script:{line}."),
            None => String::new(),
        };
        Ok(Resp::Error(one_line(&(text + &place))))
    }
}

/// What a script gets that the server does not know.
pub(crate) const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

impl Names {
    /// A script's result as the client gets it.
    fn reply(&self, value: Value) -> mlua::Result<Resp> {
        Ok(match value {
            Value::Boolean(true) => Resp::Int(1),
            Value::Integer(value) => Resp::Int(value),
            Value::Number(value) => Resp::Int(truncate_double(value)),
            Value::String(text) => Resp::Bulk(text.as_bytes().to_vec()),
            Value::Table(table) => return self.table_reply(&table),
            _ => Resp::Nil,
        })
    }

    fn table_reply(&self, table: &Table) -> mlua::Result<Resp> {
        if let Value::String(text) = table.raw_get(&self.err)? {
            return Ok(Resp::Error(one_line(&text.to_string_lossy())));
        }
        if let Value::String(text) = table.raw_get(&self.ok)? {
            return Ok(Resp::Simple(one_line(&text.to_string_lossy())));
        }
        let mut items = Vec::new();
        // The first nil ends the array, whatever stands behind it.
        for item in table.sequence_values::<Value>() {
            items.push(self.reply(item?)?);
        }
        Ok(Resp::Array(items))
    }

    /// A command's reply as the script gets it.
    fn value(&self, lua: &Lua, reply: Resp) -> mlua::Result<Value> {
        Ok(match reply {
            Resp::Nil => Value::Boolean(false),
            // Lua 5.1 has doubles only, so that integers above 2^53 lose their last digits here.
            Resp::Int(value) => Value::Number(value as f64),
            Resp::Bulk(bytes) => Value::String(lua.create_string(bytes)?),
            Resp::Simple(text) => {
                let table = lua.create_table_with_capacity(0, 1)?;
                table.raw_set(&self.ok, text)?;
                Value::Table(table)
            }
            Resp::Array(items) => {
                let table = lua.create_table_with_capacity(items.len(), 0)?;
                for item in items {
                    table.raw_push(self.value(lua, item)?)?;
                }
                Value::Table(table)
            }
            Resp::Error(text) => {
                let table = lua.create_table_with_capacity(0, 1)?;
                table.raw_set(&self.err, text)?;
                Value::Table(table)
            }
        })
    }
}

/// Adds `call`, which throws the error of a command, and `pcall`, which gives it as a table.
fn add_commands(lua: &Lua, tools: &Table, server: &Arc<Mutex<Server>>, names: &Names) -> mlua::Result<()> {
    let (held, known) = (server.clone(), names.clone());
    let call = lua.create_function(move |lua, values: MultiValue| match run_command(&held, &values) {
        Ok(reply) => known.value(lua, reply),
        Err(error) => Err(mlua::Error::external(error)),
    })?;
    tools.raw_set("call", call)?;
    let (held, known) = (server.clone(), names.clone());
    let pcall = lua.create_function(move |lua, values: MultiValue| {
        known.value(lua, run_command(&held, &values).unwrap_or_else(Resp::from))
    })?;
    tools.raw_set("pcall", pcall)
}

fn run_command(server: &Mutex<Server>, values: &MultiValue) -> Answer {
    let arguments = Arguments::of(values)?;
    // A panic in a command ends the test that runs it; the data is not used afterwards.
    server.lock().unwrap_or_else(PoisonError::into_inner).run_in_script(&arguments.slices())
}

/// The text of an error that a command threw, or that a script threw in the same form.
fn text_of(_: &Lua, failure: Value) -> mlua::Result<Option<LuaOrText>> {
    Ok(match failure {
        Value::Error(error) => Some(Either::Right(match error.downcast_ref::<ErrorReply>() {
            Some(reply) => reply.text().to_owned(),
            None => format!("ERR {error}"),
        })),
        Value::Table(table) => match table.raw_get::<Value>("err")? {
            Value::String(text) => Some(Either::Left(text)),
            _ => None,
        },
        _ => None,
    })
}

type LuaOrText = Either<LuaString, String>;

/// The line of the script that runs now, below the functions of the sandbox.
fn line_of_script(lua: &Lua) -> Option<usize> {
    (0..200).find_map(|level| {
        lua.inspect_stack(level, |frame| {
            let ours = frame.source().source.is_some_and(|source| source == "@user_script");
            ours.then(|| frame.current_line()).flatten()
        })
        .flatten()
    })
}

fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

fn fail<T>(text: &'static str) -> mlua::Result<T> {
    Err(mlua::Error::external(ErrorReply::fixed(text)))
}

/// The state of the numbers of a server that has just started: the constants of drand48.
const FIRST_RANDOM: u64 = 0x1234_ABCD_330E;

/// What the sandbox needs from outside Lua.
fn tools(lua: &Lua, random: &Arc<AtomicU64>) -> mlua::Result<Table> {
    let tools = lua.create_table()?;
    let sha1hex = |lua: &Lua, values: MultiValue| {
        let text = match values.iter().next() {
            Some(value) if values.len() == 1 => lua.coerce_string(value.clone())?,
            _ => return fail("ERR wrong number of arguments"),
        };
        let bytes = text.map(|text| text.as_bytes().to_vec()).unwrap_or_default();
        Ok(Sha1::from(bytes).digest().to_string())
    };
    tools.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    let log = |_: &Lua, values: MultiValue| match values.len() {
        0 | 1 => fail("ERR redis.log() requires two arguments or more."),
        _ => Ok(()),
    };
    tools.raw_set("log", lua.create_function(log)?)?;
    let setresp = |_: &Lua, version: Value| match version {
        Value::Integer(2) => Ok(()),
        _ => fail("ERR RESP version must be 2."),
    };
    tools.raw_set("setresp", lua.create_function(setresp)?)?;
    tools.raw_set("pack", lua.create_function(packing::pack)?)?;
    tools.raw_set("unpack", lua.create_function(packing::unpack)?)?;
    tools.raw_set("version", VERSION)?;
    tools.raw_set("version_number", 0x0007_000f)?;
    let state = random.clone();
    let next = move |_: &Lua, (low, high): (Option<f64>, Option<f64>)| {
        let (low, high) = match (low, high) {
            (None, _) => return Ok(next_random(&state)),
            (Some(high), None) => (1.0, high.trunc()),
            (Some(low), Some(high)) => (low.trunc(), high.trunc()),
        };
        if low > high {
            return Err(mlua::Error::runtime("bad argument to 'random' (interval is empty)"));
        }
        Ok((next_random(&state) * (high - low + 1.0)).floor() + low)
    };
    tools.raw_set("random", lua.create_function(next)?)?;
    let state = random.clone();
    let seed = move |_: &Lua, seed: f64| {
        state.store(u64::from(seed as i64 as u32) << 16 | 0x330E, Ordering::Relaxed);
        Ok(())
    };
    tools.raw_set("randomseed", lua.create_function(seed)?)?;
    Ok(tools)
}

/// The next number of drand48, cut to 31 bits: the same on every machine, as in Redis.
fn next_random(state: &AtomicU64) -> f64 {
    let next = state.load(Ordering::Relaxed).wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF;
    state.store(next, Ordering::Relaxed);
    let bits = (next >> 17) % 0x7FFF_FFFF;
    bits as f64 / f64::from(0x7FFF_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(source: &str) -> Resp {
        let server = Arc::new(Mutex::new(Server::new(0, 0)));
        let mut interpreter = Interpreter::new(&server);
        server.lock().expect("not poisoned").begin_script(&[b"k"]);
        match interpreter.compile("sha", source.as_bytes()) {
            Ok(()) => interpreter.call("sha", &[b"k"], &[b"x", b"\xff"]),
            Err(error) => error.into(),
        }
    }

    fn error(source: &str) -> String {
        run(source).as_error().unwrap_or_else(|| panic!("{source} did not fail")).to_owned()
    }

    #[test]
    fn results_become_replies() {
        let items = vec![Resp::Int(1), Resp::Int(-1), Resp::bulk("a"), Resp::Int(1), Resp::Nil];
        assert_eq!(run("return {1.9, -1.9, 'a', true, false, nil, 7}"), Resp::Array(items));
        assert_eq!(run("return {ok='FINE'}"), Resp::Simple("FINE".to_owned()));
        assert_eq!(run("return {err='MY error'}"), Resp::Error("MY error".to_owned()));
        assert_eq!(run("return ARGV[2] .. KEYS[1]"), Resp::bulk(b"\xffk".to_vec()));
        assert_eq!(run("return 1e300"), Resp::Int(i64::MIN));
        assert_eq!(run("return"), Resp::Nil);
    }

    #[test]
    fn numbers_reach_commands_as_redis_prints_them() {
        let stored =
            |number: &str| run(&format!("redis.call('SET','k',{number}) return redis.call('GET','k')"));
        assert_eq!(stored("100000000000000000"), Resp::bulk("1e+17"));
        assert_eq!(stored("99999999999999984"), Resp::bulk("99999999999999984"));
        assert_eq!(stored("0.1"), Resp::bulk("0.10000000000000001"));
        assert_eq!(stored("0/0"), Resp::bulk("-nan"));
    }

    #[test]
    fn the_world_is_read_only() {
        for source in ["x = 1", "redis.x = 1", "string.x = 1", "KEYS = 1", "rawset(_G, 'x', 1)", "_G.x = 1"] {
            let text = error(source);
            assert!(
                text.starts_with("ERR user_script:1: Attempt to modify a readonly table script: "),
                "{text}"
            );
        }
        for name in ["foo", "os", "io", "print", "setfenv", "require", "debug", "dofile"] {
            let text = error(&format!("return {name}"));
            assert!(text.contains(&format!("nonexistent global variable '{name}'")), "{text}");
        }
        assert_eq!(run("return getmetatable('') == false and 1 or 0"), Resp::Int(1));
        assert_eq!(run("return ('ab'):upper() .. #KEYS"), Resp::bulk("AB1"));
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(
            error("local a = 1\nredis.call('FOO')"),
            "ERR Unknown Redis command called from script script: sha, on @user_script:2."
        );
        assert_eq!(error("error('boo')"), "ERR user_script:1: boo script: sha, on @user_script:1.");
        assert_eq!(error("error({err='MY err'})"), "MY err script: sha, on @user_script:1.");
        assert!(
            error("syntax error").starts_with("ERR Error compiling script (new function): user_script:1: ")
        );
        assert_eq!(
            run("return redis.pcall('FOO').err"),
            Resp::bulk("ERR Unknown Redis command called from script")
        );
        let caught = run("local ok, e = pcall(redis.call, 'GET', 'other') return {tostring(ok), e}");
        assert_eq!(caught, Resp::Array(vec![Resp::bulk("false"), Resp::bulk("ERR undeclared key 'other'")]));
    }

    #[test]
    fn random_numbers_repeat() {
        assert_eq!(run("return tostring(math.random())"), Resp::bulk("0.39646477363839"));
        assert_eq!(run("math.randomseed(7) return tostring(math.random())"), Resp::bulk("0.26644419658298"));
        assert_eq!(run("return math.random(100)"), Resp::Int(40));
    }
}
