-- Goes before every script about records. KEYS[1] and KEYS[2] are the namespace's.
local meta, machines = KEYS[1], KEYS[2]

-- The namespace, or nil and the reply that says why not. An empty uuid means any.
local function namespace(uuid)
  local flawed = flaw(meta, 'hash') or flaw(machines, 'set')
  if flawed then return nil, flawed end
  if redis.call('EXISTS', meta) == 0 then
    if redis.call('EXISTS', machines) == 1 then return nil, {'lost', meta, machines} end
    return nil, {'unopened'}
  end
  local found = redis.call('HMGET', meta, 'schema', 'uuid', 'fingerprint', 'floor')
  if found[1] ~= '1' then return nil, {'schema', meta, found[1] or ''} end
  for i = 2, 4 do
    if not found[i] then return nil, {'damaged', meta} end
  end
  if uuid ~= '' and uuid ~= found[2] then return nil, {'changed'} end
  return {uuid = found[2], fingerprint = found[3], floor = found[4]}
end

-- The eight values of a record, or nil if it was never claimed; or nil and the reply about its flaw.
local function record(key)
  local flawed = flaw(key, 'hash')
  if flawed then return nil, flawed end
  if redis.call('EXISTS', key) == 0 then return nil end
  local found = redis.call('HMGET', key,
    'epoch', 'owner', 'bound', 'attempt', 'released', 'host', 'pid', 'info_time')
  for i = 1, 8 do
    if not found[i] then return nil, {'damaged', key} end
  end
  return found
end

-- The same for one machine ID, which is not listed if it was never claimed.
local function claimed(key, machine)
  local found, flawed = record(key)
  if not found and not flawed and redis.call('SISMEMBER', machines, machine) == 1 then
    return nil, {'lost', key, machines}
  end
  return found, flawed
end

local function write(key, machine, values)
  redis.call('HSET', key, 'epoch', values[1], 'owner', values[2], 'bound', values[3],
    'attempt', values[4], 'released', values[5], 'host', values[6], 'pid', values[7],
    'info_time', values[8])
  redis.call('SADD', machines, machine)
end

