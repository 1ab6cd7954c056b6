if sequence then
  -- How long its key lives is told seldom: the server takes longer for that than for the rest. What was told by a clock
  -- that was ahead counts for nothing.
  local until_when = not_after or MOMENT
  local tells = not lives_for or until_when > lives_for or lives_for - until_when > LANE_GRACE
  if tells then lives_for = until_when + LANE_GRACE end
  local head = struct.pack(LANE_HEAD, sequence, until_when, lives_for)
  if tells then
    call('SET', LANE, head .. answer, 'PX', format('%d', math.ceil((lives_for + LANE_GRACE - MOMENT) / 1000) + 1))
  else
    call('SET', LANE, head .. answer, 'KEEPTTL')
  end
end
