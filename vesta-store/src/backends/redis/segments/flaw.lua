-- Goes before every script. A reply begins with a word that says what it is.

-- The reply about a key that Vesta did not leave so; nil if there is nothing to say.
local function flaw(key, kind)
  local found = redis.call('TYPE', key).ok
  if found == 'none' then return nil end
  if found ~= kind then return {'type', key, found} end
  if redis.call('PTTL', key) ~= -1 then return {'expires', key} end
end

