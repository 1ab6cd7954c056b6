local replication = call('INFO', 'replication')
-- Before 6.2.7 Redis asks only plain commands whether a primary that has lost its replicas may go on writing, and no script.
if string.find(replication, 'min_slaves_good_slaves:0\r', 1, true) then
  return redis.error_reply('NOREPLICAS Not enough good replicas to write.')
end
local at = string.find(replication, 'master_replid:', 1, true)
