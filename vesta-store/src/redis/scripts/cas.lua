-- KEYS[3]: the record. ARGV: uuid of the namespace, machine ID, the epoch, owner and bound expected,
-- and the eight new values.
local space, flawed = namespace(ARGV[1])
if flawed then return flawed end
local key, machine = KEYS[3], ARGV[2]
local found, flawed = claimed(key, machine)
if flawed then return flawed end

-- Numbers are compared as the text they are: as Lua's numbers they would lose bits above 2^53.
local epoch, owner, bound = '0', string.rep('0', 32), space.floor
if found then epoch, owner, bound = found[1], found[2], found[3] end
if epoch == ARGV[3] and owner == ARGV[4] and bound == ARGV[5] then
  write(key, machine, {unpack(ARGV, 6, 13)})
  return {'done'}
end
if not found then return {'absent', space.floor} end
for i = 1, 4 do
  if found[i] ~= ARGV[5 + i] then return {'conflict', '0', unpack(found)} end
end
-- This very request took effect before. Written once more, so that waiting for the replicas, which
-- looks at what was written over this connection, covers it.
write(key, machine, found)
return {'conflict', '1', unpack(found)}
