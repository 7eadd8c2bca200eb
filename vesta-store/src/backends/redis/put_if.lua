-- KEYS[1]: the area. ARGV: the key, the new value, and the old value; without the last there must be no
-- entry.
local area, key, new, old = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if redis.call('PTTL', area) >= 0 then return 'expires' end
local found = redis.call('HGET', area, key) or nil
if found ~= old and found ~= new then return 'other' end
-- Also where the new value is there already, from a request whose reply was lost: waiting for the replicas,
-- which looks at what was written over this connection, then covers it.
redis.call('HSET', area, key, new)
return found == old and 'put' or 'repeated'
