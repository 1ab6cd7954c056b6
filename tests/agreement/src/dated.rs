//! A real server whose scripts are told what time it is, and who they are on: its Lua, its packing of numbers, its text of them, at any moment.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use leasehold::Micros;
use leasehold::store::redis::{Resp, Transport, TransportError};
use leasehold::store::{Listener, Watch};

use crate::Real;

/// Commands to a real server, whose scripts find the time that was set here, and keys that have expired by it gone.
#[derive(Clone, Debug)]
pub struct Dated {
    real: Real,
    wall: Arc<AtomicU64>,
    incarnation: Arc<Mutex<String>>,
}

/// Stands before the script. Time is told, and a key's end by it is kept beside the keys: the server's own clock would end
/// it at another moment. As the server does, a key is gone after the millisecond of its end.
const PREFACE: &str = "
local real, wall, ends = redis, '@WALL@', 'ends of keys'
local millisecond = tonumber(string.sub(wall, 1, -4))
for i = 1, #KEYS do
  local last = real.call('HGET', ends, KEYS[i])
  if last and tonumber(last) < millisecond then real.call('DEL', KEYS[i]); real.call('HDEL', ends, KEYS[i]) end
end
local redis = { error_reply = real.error_reply }
function redis.call(name, ...)
  if name == 'INFO' then return 'master_replid:@INCARNATION@' end
  if name == 'TIME' then return { string.sub(wall, 1, -7), string.sub(wall, -6) } end
  local words = { ... }
  if name == 'DEL' then real.call('HDEL', ends, words[1]) end
  if name ~= 'SET' then return real.call(name, ...) end
  if words[3] == 'PX' then
    real.call('HSET', ends, words[1], string.format('%d', millisecond + words[4]))
  elseif words[3] ~= 'KEEPTTL' then
    real.call('HDEL', ends, words[1])
  end
  return real.call('SET', words[1], words[2])
end
";

impl Dated {
    /// A transport over this connection.
    pub fn new(real: Real, wall: Micros) -> Self {
        Dated { real, wall: Arc::new(AtomicU64::new(wall)), incarnation: Arc::default() }
    }

    /// Sets the time that scripts find.
    pub fn set_wall(&self, wall: Micros) {
        self.wall.store(wall, Relaxed);
    }

    /// Sets the identity that scripts find.
    pub fn set_incarnation(&self, incarnation: &str) {
        incarnation.clone_into(&mut self.incarnation.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Transport for Dated {
    async fn send(&self, mut command: Vec<String>) -> Result<Resp, TransportError> {
        match command.first().map(String::as_str) {
            // The script that is meant is the one with its preface, which the server does not have.
            Some("EVALSHA") => return Ok(Resp::Error("NOSCRIPT No matching script.".to_owned())),
            Some("EVAL") => {
                let incarnation = self.incarnation.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let preface = PREFACE.replace("@WALL@", &self.wall.load(Relaxed).to_string());
                let preface = preface.replace("@INCARNATION@", &incarnation);
                command[1].insert_str(0, &preface);
            }
            _ => {}
        }
        self.real.send(command).await
    }

    async fn subscribe(&self, _: String, _: Listener) -> Result<Option<Watch>, TransportError> {
        Ok(None)
    }
}
