-- KEYS[3]: the tag. ARGV: its name, how many numbers, the largest max_id after which so many are left.
local flawed = closed('0')
if flawed then return flawed end
local key, most = KEYS[3], ARGV[3]
local found, flawed = tag(key, ARGV[1])
if flawed then return flawed end
if not found then return {'none'} end

-- Numbers are compared as the text they are, and added by Redis: as Lua's numbers they would lose bits
-- above 2^53.
local max_id = found[1]
if string.find(max_id, '^%-[1-9]%d*$') then return {'negative', key} end
if max_id ~= '0' and not string.find(max_id, '^[1-9]%d*$') then return {'damaged', key} end
-- Without leading zeros the longer is the greater.
if #max_id > #most or (#max_id == #most and max_id > most) then return {'used_up'} end
redis.call('HINCRBY', key, 'max_id', ARGV[2])
redis.call('HSET', key, 'update_time', now())
return {'taken', max_id}
