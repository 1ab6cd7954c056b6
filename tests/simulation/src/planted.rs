//! Bugs of other systems, planted in doubles of the store and of the transport: the harness must find them all.

use leasehold::store::redis::{LIMITS_SCRIPT, SCRIPT};

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
    /// The same in the script of limits.
    Limits(&'static [(&'static str, &'static str)]),
    /// The source of tokens says that there is none when it fails.
    SourceAsEmpty,
    /// The resources that locks guard take every write.
    CarelessResource,
    /// Of several servers half of an even number is enough.
    HalfIsEnough,
    /// The transport tells every second server nothing of releases, and says that it did.
    ReleaseToSome,
    /// The same of renewals.
    RenewalOfSome,
    /// The transport makes deadlines count from the arrival of the reply.
    DeadlineFromReply,
    /// The transport repeats what got no reply, under another lane.
    OtherLane,
    /// The transport reads an error as a grant.
    ErrorAsGrant,
    /// The transport reads an error as "held by others".
    ErrorAsExhausted,
}

use PlantedFault::{Limits, Script};

/// Nothing is noticed of a server that restarted empty: not by who defines the pool anew, nor by who has seen it before.
const EMPTY_RESTART: PlantedFault = Script(&[
    ("if seen > 0 then", "if seen < 0 then"),
    ("elseif up_since + wanted", "elseif seen < 0 and up_since + wanted"),
    ("elseif seen > 0 and seen < epoch and pool[5] < epoch then", "elseif false then"),
]);

/// Those that are found in worlds in which accounts are leased.
pub const OF_POOLS: [Planted; 28] = [
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
            "elseif s[4] == 'r' then\n          local list",
            "elseif s[4] == 'r' or s[4] == 'h' then\n          local list",
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
        fault: Script(&[("called = called .. ' !' .. format('%d', s[8])", "")]),
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

/// Those that are found in worlds in which limits are charged.
pub const OF_LIMITS: [Planted; 41] = [
    Planted {
        name: "doubled envelope charged twice",
        fault: Limits(&[("if sequence <= last and", "if sequence < last and")]),
    },
    Planted {
        name: "late envelope charged",
        fault: Limits(&[("if not_after and wall > not_after then", "if false then")]),
    },
    Planted { name: "charge sent again under another lane", fault: PlantedFault::OtherLane },
    Planted { name: "store error read as allowed", fault: PlantedFault::ErrorAsGrant },
    Planted {
        name: "group without roll back",
        fault: Limits(&[(
            "local whole = answer or bound_allowed",
            "local whole = answer or bound_allowed or count > 1",
        )]),
    },
    Planted {
        name: "group judged by its first limit",
        fault: Limits(&[("binds = not allowed", "binds = false")]),
    },
    Planted {
        name: "reservation given back twice",
        fault: Limits(&[("elseif state ~= 'p' then", "elseif state == 'c' then")]),
    },
    Planted {
        name: "reservation given back after its time",
        fault: Limits(&[
            ("if not packed or ends <= wall then", "if not packed then"),
            (
                "values[held], format('%d', ceil(ttl / 1000) + 1) }",
                "values[held], format('%d', ceil(ttl / 100) + 1) }",
            ),
        ]),
    },
    Planted {
        name: "what was refilled since given back too",
        fault: Limits(&[("if mark then\nquotient", "if false then\nquotient")]),
    },
    Planted {
        name: "next period of a budget as long as who asks first says",
        fault: Limits(&[("known = said > 0 and now < ending(said, said_offset, ends)", "known = false")]),
    },
    Planted {
        name: "longer period that lengthens nothing",
        fault: Limits(&[("ends = math.max(ends, ending(period, offset, now))", "")]),
    },
    Planted {
        name: "calendar that stays though nobody says it",
        fault: Limits(&[(
            "said, said_offset = period, offset\nend\nturns",
            "if said ~= period then said, said_offset = period, offset end\nend\nturns",
        )]),
    },
    Planted {
        name: "budget given back in the next period",
        fault: Limits(&[
            ("if used == '0' then epoch = false end", ""),
            (
                "packed, 'PX', format('%d', ceil(lasts / 1000) + 1)",
                "packed, 'PX', format('%d', ceil(lasts / 500))",
            ),
        ]),
    },
    Planted {
        name: "flight that lands when it is given back only",
        fault: Limits(&[("if what ~= 'commit' or kind == 'f' then", "if what ~= 'commit' then")]),
    },
    Planted {
        name: "room kept for one that waits taken by who came later",
        fault: Limits(&[("elseif waited and claim ~= 0 and cost > 0", "elseif false and cost > 0")]),
    },
    Planted {
        name: "room kept for one that has it",
        fault: Limits(&[("whose == claim[2] then claim = 0 end", "false then claim = 0 end")]),
    },
    Planted {
        name: "room kept for one taken by those of its process who wait for something else",
        fault: Limits(&[("* 65536 + args[first - 1]", "* 65536")]),
    },
    Planted {
        name: "room kept no longer for who is far away",
        fault: Limits(&[("now + 500000 + far", "now + 500000")]),
    },
    Planted {
        name: "clock that is ahead for ever",
        fault: Limits(&[("elseif r[2] > 0 then", "elseif false then")]),
    },
    Planted {
        name: "budget as long as before its reset",
        fault: Limits(&[("ends = ending(said, said_offset, now)\nend\nend\nif gives", "end\nend\nif gives")]),
    },
    Planted {
        name: "nothing given back by who has not heard of a reset",
        fault: Limits(&[(
            "their_birth ~= birth and (string.sub(past, 2, 33) ~= birth or their_birth > birth)",
            "their_birth ~= birth",
        )]),
    },
    Planted {
        name: "clock set back refills",
        fault: Limits(&[
            ("if now < r[1] then", "if false then"),
            ("r[4], r[5], now - r[1], nil", "r[4], r[5], math.abs(now - r[1]), nil"),
        ]),
    },
    Planted {
        name: "window shorter by one cell",
        fault: Limits(&[("if time + span > now then", "if time + span - floor(span / 32) > now then")]),
    },
    Planted {
        name: "shorter window drops what a longer one counts",
        fault: Limits(&[("if time + span > now then", "if time + math.min(span, period) > now then")]),
    },
    Planted {
        name: "given back from what another window counts",
        fault: Limits(&[("elseif back > 0 and time > since then", "elseif back > 0 then")]),
    },
    Planted {
        name: "given back what a shorter window has dropped",
        fault: Limits(&[("if period > span then", "if false then")]),
    },
    Planted {
        name: "cell of a window counts from its first take",
        fault: Limits(&[(
            "live[last - 1], live[last] = now, live[last] + cost",
            "live[last] = live[last] + cost",
        )]),
    },
    Planted {
        name: "maximum that changes forgets what is used",
        fault: Limits(&[(
            "if whole > 0 or part > 0 then",
            "if r[6] ~= max then whole, part = 0, 0 end\n          if whole > 0 or part > 0 then",
        )]),
    },
    Planted {
        name: "lowered maximum takes down what is used",
        fault: Limits(&[(
            "if whole > 0 or part > 0 then",
            "if whole >= burst then whole, part = burst, 0 end\n          if whole > 0 or part > 0 then",
        )]),
    },
    Planted {
        name: "lowered maximum forgotten when the higher one would",
        fault: Limits(&[("(whole or r[21])", "whole")]),
    },
    Planted {
        name: "not given back what was refilled before it was reserved",
        fault: Limits(&[("counted - mark,", "counted,")]),
    },
    Planted {
        name: "reservation that outlives a reset",
        fault: Limits(&[("string.sub(parts[6 + 3 * j], 1, 32) ~= epoch", "false")]),
    },
    Planted {
        name: "cost above the maximum allowed of what is unused",
        fault: Limits(&[("or up + cost <= burst", "or up + cost <= burst or up == 0")]),
    },
    Planted {
        name: "record forgotten before its time",
        fault: Limits(&[(
            "packed, 'PX', format('%d', ceil(lasts / 1000) + 1)",
            "packed, 'PX', format('%d', ceil(lasts / 2000))",
        )]),
    },
    Planted {
        name: "amounts compared as numbers",
        fault: Limits(&[(
            "if #a ~= #b then return #a < #b end\n          return a < b",
            "return tonumber(a) < tonumber(b)",
        )]),
    },
    Planted {
        name: "refill rounded up",
        fault: Limits(&[(
            "if part < 0 then whole, part = whole - 1, part + r[3] end\n          if whole < 0",
            "if part ~= 0 then whole, part = whole - 1, 0 end\n          if whole < 0",
        )]),
    },
    Planted {
        name: "time told of a refusal too soon",
        fault: Limits(&[(
            "retry = refilling(whole + cost - burst, part,",
            "retry = refilling(whole + cost - burst, 0,",
        )]),
    },
    Planted {
        name: "what was seen of money that is forgotten not taken in",
        fault: Limits(&[("if moved or not held then", "if false then")]),
    },
    Planted {
        name: "money forgotten twice added up but once",
        fault: Limits(&[("then news = part[1] end", "then news = part[1] end\nbreak")]),
    },
    Planted {
        name: "reset of money undone by what was seen before",
        fault: Limits(&[("if part[1] >= since and not", "if not")]),
    },
    Planted {
        name: "money given back again after a loss",
        fault: Limits(&[("if r[22] then\nstays", "if false then\nstays")]),
    },
];

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

impl Planted {
    /// The scripts of slots and of limits, with the bug in one of them.
    ///
    /// # Panics
    /// If the text that the bug replaces is not in the script (any more): the bug must be planted anew.
    pub fn scripts(&self) -> (String, String) {
        match self.fault {
            Script(replacements) => (self.planted(SCRIPT, replacements), LIMITS_SCRIPT.to_owned()),
            Limits(replacements) => (SCRIPT.to_owned(), self.planted(LIMITS_SCRIPT, replacements)),
            _ => (SCRIPT.to_owned(), LIMITS_SCRIPT.to_owned()),
        }
    }

    fn planted(&self, script: &str, replacements: &[(&str, &str)]) -> String {
        // The script stands without its indents, and with the values of its constants.
        let plain = |text: &str| text.split('\n').map(str::trim_start).collect::<Vec<_>>().join("\n");
        let mut script = script.to_owned();
        for (from, to) in replacements {
            let from = plain(from);
            assert!(script.contains(&from), "{}: the script has no {from:?}", self.name);
            script = script.replacen(&from, &plain(to), 1);
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_finds_its_place_in_the_script() {
        for bug in OF_POOLS
            .iter()
            .chain(&OF_LOCKS)
            .chain(&OF_THEFTS)
            .chain(&OF_ROBBERIES)
            .chain(&OF_LIMITS)
            .chain(&OF_TOKENS)
            .chain(&OF_QUORUMS)
        {
            let (slots, limits) = bug.scripts();
            assert_eq!(slots != SCRIPT, matches!(bug.fault, Script(_)), "{}", bug.name);
            assert_eq!(limits != LIMITS_SCRIPT, matches!(bug.fault, Limits(_)), "{}", bug.name);
        }
    }
}
