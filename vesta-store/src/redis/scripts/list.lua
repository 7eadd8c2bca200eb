-- ARGV: uuid of the namespace, what the keys of its records begin with.
local _, flawed = namespace(ARGV[1])
if flawed then return flawed end
local reply = {'found'}
for _, machine in ipairs(redis.call('SMEMBERS', machines)) do
  local found, flawed = claimed(ARGV[2] .. machine, machine)
  if flawed then return flawed end
  reply[#reply + 1] = machine
  for i = 1, 8 do reply[#reply + 1] = found[i] end
end
return reply
