//! Bugs that are found in worlds in which accounts are leased, from one server or by a majority of several.

use super::PlantedFault::Script;
use super::{EMPTY_RESTART, Planted, PlantedFault};

/// Those that are found in worlds in which accounts are leased.
pub const OF_POOLS: [Planted; 35] = [
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
        fault: Script(&[("return sequence == last and", "return false and")]),
    },
    Planted { name: "retry under another lane", fault: PlantedFault::OtherLane },
    Planted {
        name: "no quiet time after a promotion",
        fault: Script(&[
            ("epoch, epoch, math.max(", "epoch, 0, math.max("),
            ("and pool[5] < epoch then", "and pool[5] < epoch and pool[5] > 0 then"),
        ]),
    },
    Planted {
        name: "pool defined anew by a stranger believed to be new",
        fault: Script(&[("elseif seen > 0 and seen < epoch and pool[5] < epoch then", "elseif false then")]),
    },
    Planted { name: "no quiet time after an empty restart", fault: EMPTY_RESTART },
    Planted {
        name: "longer leases of others not told of",
        fault: Script(&[("if seen <= pool[20] then lines[1]", "if seen < 0 then lines[1]")]),
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
        fault: Script(&[
            ("if top < now then top = now end", ""),
            ("math.max(pool[8], seen, epoch)", "pool[8]"),
        ]),
    },
    Planted {
        name: "late envelope performed",
        fault: Script(&[("now > not_after or not_after < ", "not_after < ")]),
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
            "if s[4] == 'r' then\n            local list",
            "if s[4] == 'r' or s[4] == 'h' then\n            local list",
        )]),
    },
    Planted {
        name: "next for any slot not called",
        fault: Script(&[("until pool[11] + pool[12] == 0 or not serve_first()", "until true")]),
    },
    Planted {
        name: "who wants several overtaken by who takes any",
        fault: Script(&[("elseif behind or ready < least then", "elseif ready < least then")]),
    },
    Planted {
        name: "what somebody chose taken by one who takes any",
        fault: Script(&[("if way == 'any' and pool[15] > 0 then line('serve_names')() end", "")]),
    },
    Planted {
        name: "who chose a slot called before those who take any and came before",
        fault: Script(&[("if is_behind('%', card.turn .. holder) then", "if false then")]),
    },
    Planted {
        name: "what is kept for one granted to another who wants several",
        fault: Script(&[("if s[4] == 'h' and s[17] == holder and", "if s[4] == 'h' and")]),
    },
    Planted {
        name: "who chose a slot served before all who wait",
        fault: Script(&[("if queue.precedes('%', holder) then return {} end", "")]),
    },
    Planted {
        name: "who chose a slot not called",
        fault: Script(&[("slots = gather(holder, card)", "slots = card.count > 1 and gather(holder, card)")]),
    },
    Planted { name: "store error read as a grant", fault: PlantedFault::ErrorAsGrant },
    Planted { name: "store error read as held by others", fault: PlantedFault::ErrorAsExhausted },
];

/// Those that are found in worlds in which a majority of servers grants locks.
pub const OF_QUORUMS: [Planted; 6] = [
    Planted { name: "half of the servers is enough", fault: PlantedFault::HalfIsEnough },
    Planted { name: "release told to some servers only", fault: PlantedFault::ReleaseToSome },
    Planted { name: "extension told to some servers only", fault: PlantedFault::RenewalOfSome },
    Planted { name: "server that fails read as a vote", fault: PlantedFault::ErrorAsGrant },
    Planted { name: "server that restarted empty votes at once", fault: EMPTY_RESTART },
    Planted {
        name: "fences of servers are counters",
        fault: Script(&[("if top < now then top = now end", "")]),
    },
];
