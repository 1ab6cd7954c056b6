//! Bugs that are found in worlds of locks, thefts and robberies.

use super::PlantedFault::Script;
use super::{Planted, PlantedFault};

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
            "free = free and (not s or s[4] == 'r') and not (pool",
            "free = free and (not s or s[4] == 'r' or i > 1) and not (pool",
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
            "free = free and (not s or s[4] == 'r') and not (pool",
            "free = free and (not s or s[4] == 'r' or s[4] == 'h') and not (pool",
        )]),
    },
    Planted { name: "next in line not called", fault: Script(&[("serve_name(id)", "")]) },
    Planted {
        name: "ticket outlives its withdrawal",
        fault: Script(&[(
            "local card = leave(holder)\n  if card then\n    take_back",
            "local card = find(holder)\n  if card then\n    take_back",
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

/// Those that are found in worlds in which thieves do not wait for the end of leases.
pub const OF_THEFTS: [Planted; 9] = [
    Planted { name: "resource that looks at no fence", fault: PlantedFault::CarelessResource },
    Planted {
        name: "fence of whoever was robbed given to the thief",
        fault: Script(&[(
            "local top = pool[8] + 1\n    if top < now then top = now end",
            "local top = math.max(s[8], pool[8])\n    if top == 0 then top = now end",
        )]),
    },
    Planted {
        name: "thief that does not wait as long as it said",
        fault: Script(&[(
            "end_at(s, math.min(s[10], now + card.steal))",
            "end_at(s, math.min(s[10], now + floor(card.steal / 2)))",
        )]),
    },
    Planted {
        name: "equals steal from each other",
        fault: Script(&[("s[15] >= priority then return nil", "s[15] > priority then return nil")]),
    },
    Planted {
        name: "who vanished has stolen all the same",
        fault: Script(&[(
            "if s[4] ~= 'l' or claimant(s) then return false end",
            "if true then return false end",
        )]),
    },
    Planted {
        name: "claimed lease prolonged",
        fault: Script(&[("and s[19] ~= '' and stealing('heed')(s)", "and false")]),
    },
    Planted {
        name: "holder not told of its claimant",
        fault: Script(&[("marks[#marks + 1] = ' !' .. format('%d', s[8])", "")]),
    },
    Planted {
        name: "who is called is told only as a holder is",
        fault: Script(&[("if called ~= '0' then redis", "if string.find(called, '!', 1, true) then redis")]),
    },
    Planted {
        name: "robbed holder gives back what the thief has",
        fault: Script(&[("> fence then answer = 'lost taken'", "> fence and false then answer = nil")]),
    },
];

/// Those that are found in worlds in which such thieves take accounts.
pub const OF_ROBBERIES: [Planted; 4] = [
    Planted { name: "gate that looks at no fence", fault: PlantedFault::CarelessResource },
    Planted {
        name: "nonce of a robbed account trusted",
        fault: Script(&[(
            "if s[5] ~= 'u' then s[5] = 'd' end\n      settle(s, s[10])",
            "if s[19] == '' and s[5] ~= 'u' then s[5] = 'd' end\n      settle(s, s[10])",
        )]),
    },
    Planted {
        name: "thief of any account that does not wait as long as it said",
        fault: Script(&[(
            "end_at(s, math.min(s[10], now + card.steal))",
            "end_at(s, math.min(s[10], now + floor(card.steal / 2)))",
        )]),
    },
    Planted {
        name: "robbed holder tells what became of the thief's nonce",
        fault: Script(&[("> fence then answer = 'lost taken'", "> fence and false then answer = nil")]),
    },
];
