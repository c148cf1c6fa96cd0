--- Talks to the language server. Errors are shown here, so that a caller only says what to do with an answer.

local M = {}

M.name = 'offload'

---@param message string
---@param level? integer
function M.say(message, level)
  vim.notify('offload: ' .. message, level or vim.log.levels.INFO)
end

--- The client of a buffer, else any: every one of them reaches the same hub.
---@param buffer? integer
---@return vim.lsp.Client?
function M.find(buffer)
  local own = buffer and vim.lsp.get_clients({ name = M.name, bufnr = buffer })[1]
  return own or vim.lsp.get_clients({ name = M.name })[1]
end

--- Why no server can run, if its program is not there.
---@return string?
function M.missing()
  local command = vim.lsp.config[M.name].cmd
  if type(command) == 'table' and vim.fn.executable(command[1]) == 0 then
    return ('the program `%s` was not found on PATH; set cmd in setup()'):format(command[1])
  end
end

---@param method string
---@param params table
---@param buffer integer
---@param answered fun(problem: lsp.ResponseError?, result: any)
local function send(method, params, buffer, answered)
  local client = M.find(buffer)
  if not client then
    local why = M.missing() or 'no language server runs; open a file of a supported language first'
    M.say(why, vim.log.levels.ERROR)
    return
  end
  client:request(method, params, answered, buffer)
end

---@param method string
---@param params table
---@param buffer integer
---@param answered? fun(result: any)
function M.request(method, params, buffer, answered)
  send(method, params, buffer, function(problem, result)
    if problem then
      M.say(problem.message, vim.log.levels.ERROR)
    elseif answered then
      answered(result)
    end
  end)
end

--- Runs one of the server's commands. What came of it, a refusal included, the server itself says to the user.
---@param name string
---@param argument table
---@param buffer integer
---@param done? fun()
function M.command(name, argument, buffer, done)
  send('workspace/executeCommand', { command = name, arguments = { argument } }, buffer, function(problem)
    if not problem and done then
      done()
    end
  end)
end

return M
