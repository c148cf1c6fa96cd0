--- offload in Neovim: starts the language server, draws each task's status at its block, and offers the `:Offload…`
--- commands.

local client = require('offload.client')
local help = require('offload.help')
local marks = require('offload.marks')
local tasks = require('offload.tasks')

local M = {}

---@class offload.Options
---@field cmd? string[] the program and its arguments, { 'offload', 'lsp' } unless set
---@field filetypes? string[] instead of those in lsp/offload.lua

--- Starts the server for every buffer of a supported language, those that are open already included.
---@param options? offload.Options
function M.setup(options)
  vim.lsp.config('offload', options or {})
  vim.lsp.enable('offload')
  help.index()
  local missing = client.missing()
  if missing then
    client.say(missing, vim.log.levels.ERROR)
  end
end

--- Takes a task's new state: what the server's notification carries.
---@param task offload.TaskView
function M.take(task)
  if tasks.put(task) then
    marks.draw(task)
  end
end

return M
