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

---@param method string
---@param params table
---@param buffer integer
---@param answered? fun(result: any)
function M.request(method, params, buffer, answered)
  local client = M.find(buffer)
  if not client then
    M.say('no language server runs; open a file of a supported language first', vim.log.levels.ERROR)
    return
  end
  client:request(method, params, function(problem, result)
    if problem then
      M.say(problem.message, vim.log.levels.ERROR)
    elseif answered then
      answered(result)
    end
  end, buffer)
end

return M
