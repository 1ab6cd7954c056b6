  elseif name == 'withdraw' then
    cursor = at + 2
    answer = pool[WAITING] > 0 and line('withdraw')(args[at + 2]) or 'withdrawn'

  elseif name == 'define' then
    local wanted, rest, count = tonumber(args[at + 2]), tonumber(args[at + 3]), tonumber(args[at + 4])
    cursor = at + 4 + 2 * count
    local before, new = total(), 0
    for i = at + 5, cursor, 2 do
      if not load(args[i]) then new = new + 1 end
    end
    if before + new > MAX_SLOTS then
      answer = 'full'
    else
      if not meta then
        -- A pool that is not there was never there, or was lost: lost if a client has seen a fence of it, or that it was
        -- there, and perhaps if the server started less than one quiet time ago.
        -- The server counts from the whole second in which it started: it started before that second's end.
        local uptime = tonumber(string.match(call('INFO', 'server'), 'uptime_in_seconds:(%d+)')) or 0
        local up_since = math.min(wall, (clock[1] - uptime + 1) * 1000000)
        if seen > 0 then pool[LOST_AT] = now elseif up_since + wanted + rest > now then pool[LOST_AT] = up_since end
        -- Whoever hears of the pool has seen it from here on, also before anything is granted.
        pool[EPOCH], pool[TOP], meta = now, math.max(seen, now), true
      end
      moves[#moves + 1], moves[#moves + 2] = '+inf', GUARD
      pool[LONGEST], pool[DOUBT_REST] = math.max(pool[LONGEST], wanted), math.max(pool[DOUBT_REST], rest)
      for i = at + 5, cursor, 2 do
        local s, weight = load(args[i]), tonumber(args[i + 1])
        local is_new = not s
        s = s or load(args[i], false, 'e')
        if is_new or s[STATE] ~= 'r' or s[WEIGHT] ~= weight then
          local moves = is_new or s[STATE] == 'r'
          put(s, moves and 'o' or s[STATE])
          s[WEIGHT] = weight
          if s[MODE] == 'r' and s[STATE] ~= 'o' then pool[LEAVING] = math.max(pool[LEAVING] - 1, 0) end
          if s[MODE] == 'r' or s[MODE] == 'p' then s[MODE] = 'e' end
          if moves then settle(s) end
        end
      end
      answer = format('defined %d %d', total() - before, total())
    end

  elseif name == 'change' then
    cursor = at + 4
    local s, change = load(args[at + 2]), args[at + 3]
    local opens = change == 'enable' or change == 'break'
    -- One that is removed is gone but for its lease.
    if not s or s[MODE] == 'r' and (change == 'enable' or change == 'disable' or change == 'drain') then
      answer = 'noslot'
    elseif opens and (s[MODE] == 'e' or change == 'break') and (s[STATE] == 'r' or s[STATE] == 'h') then
      -- It can be had, or somebody is about to have it. What nobody holds is not ended, whatever becomes of it later.
      answer = 'changed'
    else
      local leased = s[STATE] == 'l'
      -- A doubt that is older rests already. When that of one that is out arose, nobody knows.
      local rests = (opens or change == 'remove') and not leased and s[STATE] ~= 'o'
      local stays = leased and change ~= 'break'
      if s[MODE] == 'r' or leased and s[MODE] ~= 'e' and s[MODE] ~= 'p' then
        pool[LEAVING] = math.max(pool[LEAVING] - 1, 0)
      end
      if s[STATE] == 'h' and pool[WAITING] > 0 then line('break_offer')(s) end
      put(s, stays and 'l' or 'o')
      if change == 'enable' then
        s[MODE], s[BARRED] = 'e', 0
      elseif change == 'disable' then
        s[MODE] = 'x'
      elseif change == 'drain' then
        s[MODE] = 'd'
      elseif change == 'remove' then
        -- What is not renewed is not renewed for that.
        if s[MODE] == 'x' then s[HOLD] = s[CLAIMANT] == '' and s[ENDS] or s[AGREED] end
        s[MODE] = 'r'
      elseif change == 'quarantine' then
        s[BARRED] = math.max(s[BARRED], now + args[at + 4])
        s[MARK] = 0
        if not leased and s[KIND] ~= 'u' then s[KIND] = 'd' end
      elseif leased and s[KIND] ~= 'u' then
        s[KIND] = 'd'
      end
      if not stays then
        settle(s, rests and 0 or now)
      elseif s[MODE] ~= 'e' and s[MODE] ~= 'p' then
        pool[LEAVING] = pool[LEAVING] + 1
      end
      answer = 'changed'
    end

  elseif name == 'inspect' then
    cursor = at + 2 + args[at + 2]
    local views = {}
    for i = at + 3, cursor do
      local s = load(args[i])
      if s then
        views[#views + 1] = format(' %s %s %s %d %d %s %d %d %s %s', s[ID], s[MODE], s[STATE], s[WEIGHT], s[FENCE],
          s[HOLDER], s[SINCE], s[ENDS], s[KIND], s[FLOOR])
      end
    end
    draw('count')()
    local quiet = pool[LOST_AT] == 0 and 0 or pool[LOST_AT] + pool[LONGEST] + pool[DOUBT_REST]
    local due = call('ZCOUNT', PLACES, format('(%d', WHEN_DUE + now), BELOW_LAPSED)
    answer = format('inspected %d %d %d %d %d %d %d', total(), pool[CERTAIN] + pool[DOUBTFUL], pool[DOUBTFUL], due, quiet,
      pool[LOST_AT] % 4294967296, #views) .. table.concat(views)

  else
    cursor = at + 1
    arrange(true)
    local ids = call('HKEYS', SLOTS)
    answer = 'listed ' .. #ids .. (#ids > 0 and ' ' or '') .. table.concat(ids, ' ')
  end
