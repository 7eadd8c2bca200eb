-- ARGV: uuid and fingerprint for a new namespace, and whether to make one (1 or 0).
local space, flawed = namespace('')
if flawed and flawed[1] == 'unopened' and ARGV[3] == '1' then
  redis.call('HSET', meta, 'schema', '1', 'uuid', ARGV[1], 'fingerprint', ARGV[2], 'floor', '0')
  return {'found', ARGV[1], ARGV[2], '0'}
end
if flawed then return flawed end
return {'found', space.uuid, space.fingerprint, space.floor}
