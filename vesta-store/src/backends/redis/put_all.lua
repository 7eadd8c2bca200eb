-- KEYS[1]: the area. ARGV, for each change: key, new value, and either `over` and the old value, or
-- `absent` and an empty string if the entry must not exist.
local area, said = KEYS[1], {}
if redis.call('PTTL', area) >= 0 then return {'expires'} end
for i = 1, #ARGV, 4 do
  local key, new, old = ARGV[i], ARGV[i + 1], ARGV[i + 2] == 'over' and ARGV[i + 3] or nil
  local found = redis.call('HGET', area, key) or nil
  if found ~= old and found ~= new then
    said[#said + 1] = 'other'
  else
    -- Written even if the new value exists already, from a request whose reply was lost: waiting for
    -- the replicas covers only writes over this connection.
    redis.call('HSET', area, key, new)
    said[#said + 1] = found == old and 'put' or 'repeated'
  end
end
return said
