//! Bugs that are found in worlds in which tokens are selected.

use super::PlantedFault::Script;
use super::{EMPTY_RESTART, Planted, PlantedFault};

/// Those that are found in worlds in which tokens are selected.
pub const OF_TOKENS: [Planted; 11] = [
    Planted {
        name: "token claimed that another has",
        fault: Script(&[(
            "local can = not s or s[4] == 'r'",
            "local can = not s or s[4] == 'r' or s[4] == 'l'",
        )]),
    },
    Planted {
        name: "any holder takes a token's place",
        fault: Script(&[("s[4] == 'l' and s[17] == holder and", "s[4] == 'l' and")]),
    },
    Planted {
        name: "delayed claim takes the place of a later one",
        fault: Script(&[("can = s[9] <= tonumber(args[at + 10])", "can = true")]),
    },
    Planted {
        name: "one token of all that are free",
        fault: Script(&[(
            "if #found == ask[9] then break end\nif not seen",
            "if #found == 1 then break end\nif not seen",
        )]),
    },
    Planted {
        name: "release of a token without fence check",
        fault: Script(&[("> fence then answer = 'lost taken'", "> fence and false then answer = nil")]),
    },
    Planted {
        name: "sweep frees tokens that are held",
        fault: Script(&[(
            "format('%d', 2533274790395904 + now), 'LIMIT'",
            "format('%d', 2533274790395904 + now + 1500000), 'LIMIT'",
        )]),
    },
    Planted {
        name: "late claim of tokens performed",
        fault: Script(&[("now > not_after or not_after < ", "not_after < ")]),
    },
    Planted {
        name: "record of a token left behind",
        fault: Script(&[("if mode == 'r' or mode == 'p' then", "if mode == 'r' then")]),
    },
    Planted { name: "tokens granted after an empty restart", fault: EMPTY_RESTART },
    Planted {
        name: "deadline of a selection counted from the reply",
        fault: PlantedFault::DeadlineFromReply,
    },
    Planted { name: "source that fails read as an empty wallet", fault: PlantedFault::SourceAsEmpty },
];
