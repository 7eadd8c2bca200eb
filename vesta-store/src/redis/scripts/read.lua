-- KEYS[3]: the record. ARGV: uuid of the namespace, machine ID.
local _, flawed = namespace(ARGV[1])
if flawed then return flawed end
local found, flawed = claimed(KEYS[3], ARGV[2])
if flawed then return flawed end
if not found then return {'none'} end
return {'found', unpack(found)}
