-- ARGV: whether to make what is missing, what the key of each tag begins with.
local flawed = closed(ARGV[1])
if flawed then return flawed end
local reply = {'found'}
for _, name in ipairs(redis.call('SMEMBERS', tags)) do
  local found, flawed = tag(ARGV[2] .. name, name)
  if flawed then return flawed end
  reply[#reply + 1] = name
  for i = 1, 4 do reply[#reply + 1] = found[i] or '' end
end
return reply
