//! Bugs of other systems, planted in doubles of the store and of the transport: the harness must find them all.

use leasehold::store::redis::SCRIPT;

/// A bug and how it is planted.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub fault: PlantedFault,
}

/// Where a bug is.
#[derive(Clone, Copy, Debug)]
pub enum PlantedFault {
    /// In the script: these texts are replaced by those.
    Script(&'static [(&'static str, &'static str)]),
    /// The transport makes deadlines count from the arrival of the reply.
    DeadlineFromReply,
    /// The transport repeats what got no reply, under another lane.
    OtherLane,
    /// The transport reads an error as a grant.
    ErrorAsGrant,
    /// The transport reads an error as "held by others".
    ErrorAsExhausted,
}

use PlantedFault::Script;

/// Those that are found in worlds in which accounts are leased.
pub const OF_POOLS: [Planted; 27] = [
    Planted {
        name: "release without fence check",
        fault: Script(&[("> fence then answer = 'lost taken'", "> fence and false then answer = nil")]),
    },
    Planted {
        name: "renewal of a lease that has ended",
        fault: Script(&[("~= 'l' then answer = 'lost ended'", "~= 'l' and false then answer = nil")]),
    },
    Planted { name: "deadline counted from the reply", fault: PlantedFault::DeadlineFromReply },
    Planted {
        name: "nonce reused after an unknown outcome",
        fault: Script(&[("elseif outcome ~= 'unused' then\n    kind = 'd'", "")]),
    },
    Planted {
        name: "nonces compared as numbers",
        fault: Script(&[(
            "if #a ~= #b then return #a < #b end\n  return a < b",
            "return tonumber(a) < tonumber(b)",
        )]),
    },
    Planted {
        name: "nonce kept as a number",
        fault: Script(&[(
            "if kind == 'k' and not less(after, value) or after ~= '-' and less(value, after) then\n      answer = 'backwards ' .. kind .. ' ' .. after\n    end\n    kind, after = 'k', value",
            "kind, after = 'k', format('%d', tonumber(value))",
        )]),
    },
    Planted {
        name: "repeated envelope performed twice",
        fault: Script(&[("if ahead == 0 then", "if false then")]),
    },
    Planted { name: "retry under another lane", fault: PlantedFault::OtherLane },
    Planted {
        name: "no quiet time after a promotion",
        fault: Script(&[("+ 1), now, math.max(", "+ 1), 0, math.max(")]),
    },
    Planted {
        name: "no quiet time after an empty restart",
        fault: Script(&[
            ("if seen > 0 then", "if seen < 0 then"),
            ("elseif up_since + wanted", "elseif seen < 0 and up_since + wanted"),
        ]),
    },
    Planted {
        name: "expiry leaves the nonce trusted",
        fault: Script(&[("if s[5] ~= 'u' then s[5] = 'd' end\n      settle(s, s[10])", "settle(s, s[10])")]),
    },
    Planted { name: "cooldown ignored", fault: Script(&[("local ends = s[12]", "local ends = 0")]) },
    Planted {
        name: "rest of a slot in doubt forgotten",
        fault: Script(&[("if s[5] == 'd' then s[12] =", "if false then s[12] =")]),
    },
    Planted {
        name: "nonces trusted across a promotion",
        fault: Script(&[(
            "if s[7] ~= pool[4] then\n    if s[5] ~= 'u' then s[5] = 'd' end",
            "if s[7] ~= pool[4] then",
        )]),
    },
    Planted {
        name: "fence is a counter of the server's memory",
        fault: Script(&[("if top < now then top = now end", ""), ("math.max(pool[8], seen)", "pool[8]")]),
    },
    Planted {
        name: "late envelope performed",
        fault: Script(&[("if not_after and now > not_after then", "if false then")]),
    },
    Planted {
        name: "sweep frees live leases",
        fault: Script(&[(
            "format('%d', 2533274790395904 + now), 'LIMIT'",
            "format('%d', 2533274790395904 + now + 1500000), 'LIMIT'",
        )]),
    },
    Planted {
        name: "a slot that cools down comes due when its lease would have",
        fault: Script(&[("put(s, 'c', format('%d', 2533274790395904 + ends))", "put(s, 'c')")]),
    },
    Planted {
        name: "renewals without end",
        fault: Script(&[("if limit ~= 0 and limit < ends then ends = limit end", "")]),
    },
    Planted {
        name: "clock set back frees nothing and prolongs all",
        fault: Script(&[("if now < pool[2] then now = pool[2] end", "now = wall")]),
    },
    Planted {
        name: "thief waits for nobody",
        fault: Script(&[(
            "end_at(s, math.min(s[10], now + card.steal))",
            "end_at(s, math.min(s[10], now + 1))",
        )]),
    },
    Planted { name: "priorities of those who wait ignored", fault: Script(&[("rank = rank - ask[4]", "")]) },
    Planted { name: "nobody grows older", fault: Script(&[("if ask[5] == '0' then", "if true then")]) },
    Planted {
        name: "what is kept for one taken by its id",
        fault: Script(&[(
            "elseif s[4] == 'r' then\n          if #found",
            "elseif s[4] == 'r' or s[4] == 'h' then\n          if #found",
        )]),
    },
    Planted {
        name: "next for any slot not called",
        fault: Script(&[("while pool[11] + pool[12] > 0 do", "while false do")]),
    },
    Planted { name: "store error read as a grant", fault: PlantedFault::ErrorAsGrant },
    Planted { name: "store error read as held by others", fault: PlantedFault::ErrorAsExhausted },
];

/// Those that are found in worlds in which names are locked.
pub const OF_LOCKS: [Planted; 11] = [
    Planted {
        name: "line in the order of departure",
        fault: Script(&[(
            "return format('%05d%016d', rank, arrival)",
            "return format('%05d%016d', rank, 9007199254740992 - arrival)",
        )]),
    },
    Planted {
        name: "several names locked although one is held",
        fault: Script(&[(
            "free = (not s or s[4] == 'r') and not (pool",
            "free = (not s or s[4] == 'r' or i > 1) and not (pool",
        )]),
    },
    Planted {
        name: "several names offered although one is held",
        fault: Script(&[(
            "(not slots[i] or slots[i][4] == 'r')",
            "(not slots[i] or slots[i][4] == 'r' or i > 1)",
        )]),
    },
    Planted {
        name: "only some of several names locked",
        fault: Script(&[(
            "answer = grant(holder, #names, found)",
            "answer = grant(holder, math.max(#names - 1, 1), found)",
        )]),
    },
    Planted {
        name: "several names offered to whoever is first for one of them",
        fault: Script(&[("free = free and head(ids[i]) == holder", "free = free")]),
    },
    Planted {
        name: "record of a name left behind",
        fault: Script(&[("if mode == 'r' or mode == 'p' then", "if mode == 'r' then")]),
    },
    Planted {
        name: "what is kept for one granted to another",
        fault: Script(&[(
            "free = (not s or s[4] == 'r') and not (pool",
            "free = (not s or s[4] == 'r' or s[4] == 'h') and not (pool",
        )]),
    },
    Planted { name: "next in line not called", fault: Script(&[("serve_name(touched[at])", "")]) },
    Planted {
        name: "ticket outlives its withdrawal",
        fault: Script(&[(
            "local card = leave(holder)\n  if card and card.offered",
            "local card = find(holder)\n  if card and card.offered",
        )]),
    },
    Planted {
        name: "claim of names that overtakes all who wait",
        fault: Script(&[("and not (pool[14] > 0 and line('precedes')(names[i], holder))", "")]),
    },
    Planted {
        name: "fence of a name begins anew",
        fault: Script(&[(
            "local top = pool[8] + 1\n    if top < now then top = now end",
            "local top = s[8] + 1",
        )]),
    },
];

impl Planted {
    /// The script with the bug in it.
    ///
    /// # Panics
    /// If the text that the bug replaces is not in the script (any more): the bug must be planted anew.
    pub fn script(&self) -> String {
        let mut script = SCRIPT.to_owned();
        if let Script(replacements) = self.fault {
            // The script stands without its indents, and with the values of its constants.
            let plain = |text: &str| text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
            for (from, to) in replacements {
                let from = plain(from);
                assert!(script.contains(&from), "{}: the script has no {from:?}", self.name);
                script = script.replacen(&from, &plain(to), 1);
            }
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_finds_its_place_in_the_script() {
        for bug in OF_POOLS.iter().chain(&OF_LOCKS) {
            let changed = bug.script() != SCRIPT;
            assert_eq!(changed, matches!(bug.fault, Script(_)), "{}", bug.name);
        }
    }
}
