-- Runs inside the editor under test: takes one JSON line [statements, arguments] at a time on a socket, runs it, and
-- answers with one JSON line [good, value or message].

local socket = assert(vim.uv.new_pipe())
assert(socket:bind(vim.env.OFFLOAD_TEST_SOCKET))

local function run(line)
  local order = vim.json.decode(line, { luanil = { object = true, array = true } })
  return xpcall(function()
    return assert(loadstring(order[1]))(unpack(order[2]))
  end, debug.traceback)
end

socket:listen(1, function()
  local connection = assert(vim.uv.new_pipe())
  socket:accept(connection)
  local received = ''
  connection:read_start(function(_, bytes)
    received = received .. (bytes or '')
    local line, rest = received:match('^([^\n]*)\n(.*)$')
    if line then
      received = rest
      vim.schedule(function()
        local good, value = run(line)
        connection:write(vim.json.encode({ good, value == nil and vim.NIL or value }) .. '\n')
      end)
    end
  end)
end)

-- Answers that take several lines would wait for a key that nobody presses.
vim.o.more = false
said = {}
vim.notify = function(text)
  table.insert(said, text)
end

io.stdout:write('there\n')
io.stdout:flush()
