//! Bugs that are found in worlds of limits.

use super::PlantedFault::Limits;
use super::{Planted, PlantedFault};

/// Those that are found in worlds in which limits are charged.
pub const OF_LIMITS: [Planted; 45] = [
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
        fault: Limits(&[("(answer or bound_allowed)", "(answer or bound_allowed or count > 1)")]),
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
        name: "all given back of what is kept in part",
        fault: Limits(&[
            ("what == 'keep' and kind ~= 'f' and cost", "false"),
            ("if what == 'keep' then cost = less", "if false then cost = less"),
        ]),
    },
    Planted {
        name: "reservation given back once more on another server",
        fault: Limits(&[("forgot = string.sub(parts[6 + 3 * j], 34) ~= birth end", "forgot = false end")]),
    },
    Planted {
        name: "reservation given back after its time",
        fault: Limits(&[
            ("if not packed or ends <= wall then", "if not packed then"),
            (
                "values[held], format('%d', ceil((ends - wall) / 1000) + 1) }",
                "values[held], format('%d', ceil((ends - wall) / 100) + 1) }",
            ),
        ]),
    },
    Planted {
        name: "renewal that prolongs no flight",
        fault: Limits(&[("time = math.max(time, now + ttl)", "")]),
    },
    Planted {
        name: "renewal that shortens",
        fault: Limits(&[("ends, parts = math.max(parts[2], ends),", "ends, parts = ends,")]),
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
            "past, said, said_offset = dawn ~= furthest and format(' -%016d', furthest) or '', period, offset",
            "past = dawn ~= furthest and format(' -%016d', furthest) or ''\nif said ~= period then said, said_offset = period, offset end",
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
        fault: Limits(&[("== 'commit') or kind == 'f' then", "== 'commit') then")]),
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
        fault: Limits(&[("ends = ending(said, said_offset, now)\nif furthest", "if furthest")]),
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
        fault: Limits(&[("local forgot = r[22]", "local forgot = false")]),
    },
];
