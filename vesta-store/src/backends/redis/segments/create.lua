-- KEYS[3]: the tag. ARGV: whether to make what is missing, the tag's name, max_id, step and description,
-- which may be empty.
local flawed = closed(ARGV[1])
if flawed then return flawed end
local key, name = KEYS[3], ARGV[2]
local found, flawed = tag(key, name)
if flawed then return flawed end
if found then return {'exists'} end
-- It was removed halfway. Taken up again as it is, or written anew, it would not be what was asked for.
if redis.call('EXISTS', key) == 1 then return {'unlisted', key, tags} end
redis.call('HSET', key, 'max_id', ARGV[3], 'step', ARGV[4], 'update_time', now())
if ARGV[5] ~= '' then redis.call('HSET', key, 'description', ARGV[5]) end
redis.call('SADD', tags, name)
return {'created'}
