-- Goes before every script about segment tags. KEYS[1] says that there may be some, KEYS[2] is the set of
-- their names.
local meta, tags = KEYS[1], KEYS[2]

-- The reply that says why there are no tags to look at; nil if there may be. `create` is 1 or 0: whether
-- what is missing is made.
local function closed(create)
  local flawed = flaw(meta, 'hash') or flaw(tags, 'set')
  if flawed then return flawed end
  if redis.call('EXISTS', meta) == 0 then
    if redis.call('EXISTS', tags) == 1 then return {'lost', meta, tags} end
    if create ~= '1' then return {'unopened'} end
    redis.call('HSET', meta, 'schema', '1')
  end
  local schema = redis.call('HGET', meta, 'schema')
  if schema ~= '1' then return {'schema', meta, schema or ''} end
end

-- max_id, step, description and update_time of a tag, or nil if it is not listed; or nil and the reply
-- about its flaw.
local function tag(key, name)
  if redis.call('SISMEMBER', tags, name) == 0 then return nil end
  local flawed = flaw(key, 'hash')
  if flawed then return nil, flawed end
  if redis.call('EXISTS', key) == 0 then return nil, {'lost', key, tags} end
  local found = redis.call('HMGET', key, 'max_id', 'step', 'description', 'update_time')
  if not found[1] or not found[2] then return nil, {'damaged', key} end
  return found
end

-- Milliseconds since 1970.
local function now()
  local time = redis.call('TIME')
  return time[1] .. string.sub('00000' .. time[2], -6, -4)
end

