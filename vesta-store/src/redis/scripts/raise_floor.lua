-- ARGV: uuid of the namespace, the floor.
local space, flawed = namespace(ARGV[1])
if flawed then return flawed end
local old, new = space.floor, ARGV[2]
if not string.find(old, '^%d+$') then return {'damaged', meta} end
-- Decimal numbers without leading zeros: the longer is the greater.
if #old > #new or (#old == #new and old > new) then new = old end
-- Also if it stays, so that waiting for the replicas covers it.
redis.call('HSET', meta, 'floor', new)
return {'found', new}
