-- An envelope that came before is answered again; one that comes too late changes nothing. A lane is kept with its last
-- envelope, until when that might be performed, and which times of that kind its key lives long enough for; then comes
-- the answer. Clients have lanes of their own, and each knows one wording.
local LANE_HEAD, LANE_ANSWER, LANE_GRACE = '<ddd', 25, 60000000
local lives_for
if sequence and lane and #lane >= LANE_ANSWER then
  local last, until_when
  last, until_when, lives_for = struct.unpack(LANE_HEAD, lane)
  if sequence <= last and until_when + LANE_GRACE > MOMENT then
    return sequence == last and string.sub(lane, LANE_ANSWER) or 'stale ' .. MOMENT_TOLD
  end
end

